package e2b

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

const processService = "/process.Process/"

func (d *Data) processRoutes() {
	d.routes.HandleFunc("POST "+processService+"Start", d.streaming(d.startProcess))
	d.routes.HandleFunc("POST "+processService+"Connect", d.streaming(d.connectProcess))
	d.routes.HandleFunc("POST "+processService+"StreamInput", inputs{d}.streamInput)
	d.routes.HandleFunc("POST "+processService+"List", d.serveUnary(d.listProcesses))
	d.routes.HandleFunc("POST "+processService+"SendInput", d.serveUnary(inputs{d}.sendInput))
	d.routes.HandleFunc("POST "+processService+"CloseStdin", d.serveUnary(d.closeStdin))
	d.routes.HandleFunc("POST "+processService+"SendSignal", d.serveUnary(d.sendSignal))
	d.routes.HandleFunc("POST "+processService+"Update", d.serveUnary(d.updateProcess))
}

// processConfig is what is to be started.
type processConfig struct {
	Cmd  string            `json:"cmd"`
	Args []string          `json:"args" most:"100000"`
	Envs map[string]string `json:"envs"`
	Cwd  *string           `json:"cwd,omitempty"`
}

type terminal struct {
	Size *struct {
		Cols number `json:"cols"`
		Rows number `json:"rows"`
	} `json:"size"`
}

// window is the size; a terminal without one gets the usual.
func (t *terminal) window() (*channel.WindowSize, error) {
	if t.Size == nil || t.Size.Cols == 0 || t.Size.Rows == 0 {
		return &channel.WindowSize{Rows: 24, Cols: 80}, nil
	}
	const most = 1<<16 - 1
	if t.Size.Cols > most || t.Size.Rows > most {
		return nil, refuseWith(codeInvalid, "a terminal of %d columns and %d rows is too large", t.Size.Cols, t.Size.Rows)
	}
	return &channel.WindowSize{Rows: uint16(t.Size.Rows), Cols: uint16(t.Size.Cols)}, nil
}

type startRequest struct {
	Process *processConfig `json:"process"`
	PTY     *terminal      `json:"pty"`
	Tag     *string        `json:"tag"`
	Stdin   *bool          `json:"stdin"` // absent: yes, as older clients expect
}

const maxTag = 256 // bytes

// startProcess starts a command and follows it. The command lives on when the
// client goes away; when its time is over it is killed.
func (d *Data) startProcess(w http.ResponseWriter, c *call) (feed, error) {
	var req startRequest
	if err := readEnvelope(w, c, &req); err != nil {
		return nil, err
	}
	timeout, err := timeoutOf(c.Request)
	if err != nil {
		return nil, err
	}
	command, err := req.makeCommand(c)
	if err != nil {
		return nil, err
	}
	command.Timeout = timeout
	if err := heldError(c.box.Waits()); err != nil {
		return nil, err
	}
	started, err := d.cfg.Sandboxes.Start(c.Context(), c.id, command)
	if err != nil {
		return nil, err
	}
	what := launch{config: *req.Process, stdin: command.Stdin, terminal: req.PTY != nil, at: time.Now()}
	if req.Tag != nil {
		what.tag = *req.Tag
	}
	what = what.briefLaunch() // for as long as the stream lasts, and the list
	d.rememberLaunch(c, started.ID, what)
	return d.followCommand(c, started, what, follow{timeout: timeout, kills: true})
}

// makeCommand makes the command that the manager is asked for.
func (r *startRequest) makeCommand(c *call) (sandbox.Command, error) {
	switch {
	case r.Process == nil || r.Process.Cmd == "":
		return sandbox.Command{}, refuseWith(codeInvalid, "there is no command to start")
	case r.Tag != nil && len(*r.Tag) > maxTag:
		return sandbox.Command{}, refuseWith(codeInvalid, "the tag is %d bytes long; at most %d", len(*r.Tag), maxTag)
	}
	user, err := c.basicUser()
	if err != nil {
		return sandbox.Command{}, err
	}
	command := sandbox.Command{
		Argv: append([]string{r.Process.Cmd}, r.Process.Args...), Env: commandEnvironment(c.box.Info(), r.Process.Envs), User: user,
		Stdin: r.PTY != nil || r.Stdin == nil || *r.Stdin,
	}
	command.Judged = shellText(command.Argv)
	if r.Process.Cwd != nil {
		command.Dir = c.absolute(*r.Process.Cwd, user)
	}
	if slices.ContainsFunc(command.Argv, hasZero) || hasZero(command.Dir) {
		return sandbox.Command{}, refuseWith(codeInvalid, "a command and its directory can't have zero bytes")
	}
	if r.PTY != nil {
		command.PTY, err = r.PTY.window()
	}
	return command, err
}

func hasZero(s string) bool { return strings.ContainsRune(s, 0) }

// shellText is the text that an SDK hands to a shell, in exactly the form in which
// it does; "" for any other command. It is what the policy's rules see.
func shellText(argv []string) string {
	if len(argv) == 4 && argv[0] == "/bin/bash" && argv[1] == "-l" && argv[2] == "-c" {
		return argv[3]
	}
	return ""
}

// absolute is a directory as a path from the root: it may be relative to the
// user's home.
func (c *call) absolute(dir, user string) string {
	home := c.box.Info().Account.Home
	switch {
	case user == rootUser, user == "" && c.box.Info().Account.Default == rootUser:
		home = "/root"
	case home == "":
		home = "/home/" + defaultUser
	}
	switch {
	case dir == "" || dir == "~":
		return home
	case strings.HasPrefix(dir, "/"):
		return dir
	}
	return path.Join(home, strings.TrimPrefix(dir, "~/"))
}

type selector struct {
	PID *number `json:"pid"`
	Tag *string `json:"tag"`
}

type selected struct {
	Process *selector `json:"process"`
}

func (s *selector) String() string {
	switch {
	case s != nil && s.PID != nil:
		return fmt.Sprintf("with the pid %d", *s.PID)
	case s != nil && s.Tag != nil:
		return fmt.Sprintf("with the tag %q", text.Shorten(*s.Tag, 40))
	}
	return "without a pid or tag"
}

// connectProcess follows a command that was started before: what comes from now
// on, or its end.
func (d *Data) connectProcess(w http.ResponseWriter, c *call) (feed, error) {
	var req selected
	if err := readEnvelope(w, c, &req); err != nil {
		return nil, err
	}
	timeout, err := timeoutOf(c.Request)
	if err != nil {
		return nil, err
	}
	if err := heldError(c.box.Waits()); err != nil {
		return nil, err
	}
	command, what, err := d.findCommand(c, req.Process, true)
	if err != nil {
		return nil, err
	}
	return d.followCommand(c, command, what, follow{timeout: timeout, pid: command.PID, offset: keeper.FromNow})
}

// findCommand finds the newest command that a selector means; one that has ended only if
// asked for, and if none runs.
func (d *Data) findCommand(c *call, s *selector, ended bool) (keeper.Command, launch, error) {
	if s == nil || (s.PID == nil) == (s.Tag == nil) {
		return keeper.Command{}, launch{}, refuseWith(codeInvalid, "name the process by its pid or its tag")
	}
	commands, err := d.commands(c)
	if err != nil {
		return keeper.Command{}, launch{}, err
	}
	var found *keeper.Command
	for i := range commands {
		k := &commands[i]
		if !d.meansCommand(c, s, k) || (k.Exit != nil && !ended) {
			continue
		}
		if found == nil || (found.Exit != nil && k.Exit == nil) || (found.Exit == nil) == (k.Exit == nil) && !k.Started.Before(found.Started) {
			found = k
		}
	}
	if found == nil {
		return keeper.Command{}, launch{}, refuseWith(codeNotFound, "there is no process %s", s)
	}
	return *found, d.launched.launchOf(c.id, *found), nil
}

func (d *Data) meansCommand(c *call, s *selector, k *keeper.Command) bool {
	if s.PID != nil {
		return k.PID != 0 && k.PID == int(*s.PID)
	}
	return d.launched.launchOf(c.id, *k).tag == *s.Tag && *s.Tag != ""
}

type processInfo struct {
	Config processConfig `json:"config"`
	PID    int           `json:"pid"`
	Tag    string        `json:"tag,omitempty"`
}

// listProcesses tells of the commands that run and have their pid.
func (d *Data) listProcesses(w http.ResponseWriter, c *call) error {
	if err := readUnary(w, c, &struct{}{}); err != nil {
		return err
	}
	commands, err := d.commands(c)
	if err != nil {
		return err
	}
	answer := struct {
		Processes []processInfo `json:"processes"`
	}{Processes: []processInfo{}}
	for _, k := range commands {
		if k.Exit == nil && k.PID != 0 {
			what := d.launched.launchOf(c.id, k)
			answer.Processes = append(answer.Processes, processInfo{Config: what.config, PID: k.PID, Tag: what.tag})
		}
	}
	return writeUnary(w, c, answer)
}

// serveUnary serves a unary call.
func (d *Data) serveUnary(h func(http.ResponseWriter, *call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r)
		inProto, err := checkUnary(r)
		if inProto {
			c.codec = d.codecs[r.URL.Path]
		}
		if err == nil {
			err = withTimeout(w, c, h)
		}
		if err == nil || errors.Is(err, errAnswered) {
			return
		}
		if media, ok := errors.AsType[*unsupportedMedia](err); ok {
			http.Error(w, media.Error(), http.StatusUnsupportedMediaType)
			return
		}
		if d.isGone(c.id) {
			writeGone(w, d, c.id)
			return
		}
		f := d.explainError(c, err)
		tellRetry(w.Header(), f.Code.status(), err)
		writeObject(w, f.Code.status(), f)
	}
}

// withTimeout gives a unary call the time that its client has for it.
func withTimeout(w http.ResponseWriter, c *call, h func(http.ResponseWriter, *call) error) error {
	timeout, err := timeoutOf(c.Request)
	if err != nil {
		return err
	}
	if timeout > 0 {
		ctx, cancel := context.WithTimeout(c.Context(), timeout)
		defer cancel()
		c.Request = c.WithContext(ctx)
	}
	return h(w, c)
}

// commandEnvironment is what clients of this wire find in each command's environment,
// with what they asked for on top. It is given to commands, not to the sandbox: a
// copy has another id.
func commandEnvironment(info sandbox.Info, asked map[string]string) map[string]string {
	env := map[string]string{"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": info.ID, "E2B_TEMPLATE_ID": templateID(info)}
	maps.Copy(env, asked)
	return env
}
