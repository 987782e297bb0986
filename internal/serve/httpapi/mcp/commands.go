package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// Limits of a command. A single argument can't have more on any Linux.
const (
	maxArgument    = 120 << 10
	maxTimeout     = 3600 // seconds
	defaultTimeout = 600
)

type howToRun struct {
	Dir     string            `json:"dir,omitempty" jsonschema:"absolute folder in which it starts (default: the sandbox's own)"`
	Env     map[string]string `json:"env,omitempty" jsonschema:"variables that it has"`
	Timeout int               `json:"timeout_seconds,omitempty" jsonschema:"end it after this time, at most 3600 (default: 600, or less if the policy says so)"`
}

type runInput struct {
	aboutSandbox
	howToRun

	Command commandLine `json:"command" most:"100000" jsonschema:"a shell's text, run by sh -c; or a list: the program and its arguments, each a text of its own, with no shell between"`
}

// commandLine is a program with its arguments. A client may give a text instead, for a shell: most
// servers take one, and models write one.
type commandLine []string

// UnmarshalJSON reads either form. An empty text is one that a shell runs; null is neither form.
func (c *commandLine) UnmarshalJSON(data []byte) error {
	var text *string
	if json.Unmarshal(data, &text) != nil || text == nil {
		return json.Unmarshal(data, (*[]string)(c))
	}
	*c = commandLine{"sh", "-c", *text}
	return nil
}

// commandLineSchema is both forms.
func commandLineSchema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}},
	}}
}

// ran is how a command went.
type ran struct {
	Sandbox   string    `json:"sandbox"`
	ExitCode  int       `json:"exit_code"` // -1 while it waits for a person
	Stdout    string    `json:"stdout"`
	Stderr    string    `json:"stderr"`
	Truncated bool      `json:"truncated"` // the middle of a long output was left out
	TimedOut  bool      `json:"timed_out,omitempty"`
	Error     string    `json:"error,omitempty"`
	Command   string    `json:"command_id,omitempty"` // for wait_command, while it waits for a person
	Waiting   []waiting `json:"waiting,omitempty"`    // what it waits for a person to answer; it goes on by itself when that is approved
	Refused   []refused `json:"refused,omitempty"`
	Next      string    `json:"next,omitempty"`
}

func runCommand(ctx context.Context, c call, in runInput) (ran, error) {
	if len(in.Command) == 0 || in.Command[0] == "" {
		return ran{}, failure(codeInvalid, "command names no program", `give ["ls", "-l"], or a text for a shell: "ls -l | head"`)
	}
	for i, arg := range in.Command {
		if len(arg) > maxArgument {
			return ran{}, failure(codeTooLarge, fmt.Sprintf("command[%d] has %d bytes; it may have %d", i, len(arg), maxArgument), "write it to a file (write_file) and run that")
		}
	}
	start, err := in.commandRequest(in.Command)
	if err != nil {
		return ran{}, err
	}
	return c.runCommand(ctx, in.Sandbox, start)
}

// commandRequest describes a command to the daemon.
func (h howToRun) commandRequest(argv []string) (api.StartCommand, error) {
	start := api.StartCommand{Argv: argv, Env: h.Env, Dir: h.Dir}
	if h.Timeout < 0 || h.Timeout > maxTimeout {
		return start, failure(codeInvalid, fmt.Sprintf("timeout_seconds is %d; it is 1 to %d", h.Timeout, maxTimeout), "")
	}
	if h.Dir != "" && !path.IsAbs(h.Dir) {
		return start, failure(codeInvalid, fmt.Sprintf("dir %q is no absolute path", text.Shorten(h.Dir, 200)), "write it with a slash in front, such as /tmp")
	}
	seconds := h.Timeout
	if seconds == 0 {
		seconds = defaultTimeout
	}
	start.TimeoutMS = int64(seconds) * 1000
	return start, nil
}

// runCommand has a sandbox run a command to its end, or until it waits for a person.
func (c call) runCommand(ctx context.Context, sandbox string, start api.StartCommand) (ran, error) {
	p := c.peer
	id, err := p.needSandbox(ctx, sandbox)
	if err != nil {
		return ran{}, err
	}
	if start.Dir == "" {
		start.Dir = p.cfg.Sandbox.Workdir
	}
	command, err := c.startCommand(ctx, id, start)
	if err != nil {
		return ran{}, p.goneError(ctx, id, err)
	}
	return c.attend(ctx, &left{sandbox: id, command: command.ID, out: &commandOutput{}})
}

// startCommand starts a command. Where ctx ends meanwhile, the daemon's answer is waited for all
// the same, as long as for a kill: else the command would run, and nobody could end it. The follower of the command then ends it.
func (c call) startCommand(ctx context.Context, sandbox string, start api.StartCommand) (api.Command, error) {
	whole, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer safego.When(ctx, func() {
		limit := time.NewTimer(killLimit)
		defer limit.Stop()
		select {
		case <-limit.C:
			end()
		case <-whole.Done():
		}
	})()
	return askBackend(whole, c.peer, func(b Backend) (api.Command, error) { return b.StartCommand(whole, sandbox, start) })
}

// attend stays with a command.
func (c call) attend(ctx context.Context, l *left) (ran, error) {
	exit, holds, err := c.followCommand(ctx, l)
	if err != nil {
		return ran{}, c.peer.goneError(ctx, l.sandbox, err)
	}
	out := ran{Sandbox: l.sandbox}
	out.Stdout, out.Stderr, out.Truncated = l.out.bothTexts()
	if exit == nil {
		return c.peer.leaves(out, l, holds), nil
	}
	out.ExitCode, out.TimedOut, out.Error = exit.Code, exit.TimedOut, text.Shorten(ui.Printable(exit.Error), maxSentence)
	out.Truncated = out.Truncated || exit.Truncated
	if err := c.tellRefused(ctx, &out); err != nil {
		return ran{}, err
	}
	return out, nil
}

// tellRefused tells what was refused meanwhile to a command that failed, and of alarms to any:
// a client may well go on without what was withheld.
func (c call) tellRefused(ctx context.Context, out *ran) error {
	all, err := c.peer.newRefusals(ctx, out.Sandbox, out.ExitCode == 0)
	switch {
	case err != nil && out.ExitCode == 0: // what the command did is worth more than this
		out.Next = "it is not known whether there was an alarm, since that could not be asked; call why_blocked before you use what it made"
		return nil
	case err != nil:
		return err
	}
	out.Refused = all
	switch {
	case slices.ContainsFunc(all, func(r refused) bool { return r.Alarm }):
		out.Next = alarmThen
	case len(all) > 0 && onlyMissing(all):
		out.Next = missingThen
	case len(all) > 0:
		out.Next = refusedThen
	}
	return nil
}

// maxLeft bounds the commands of a peer that wait for a person while nobody stays with them.
// Where there are so many, the next is stayed with.
const maxLeft = 16

// mayLeave tells whether a command may be left that waits for a person.
func (p *peer) mayLeave() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.left) < maxLeft
}

// leaves tells of a command that waits for a person, and keeps in mind where it was left.
func (p *peer) leaves(out ran, l *left, holds []api.Hold) ran {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.out = &commandOutput{} // what was told is told
	p.left[l.command] = l
	out.ExitCode, out.Command, out.Waiting = -1, l.command, p.waitingFor(holds)
	out.Next = "tell your user what waits and how to answer it; then call wait_command with this command_id"
	return out
}

type waitInput struct {
	Command string `json:"command_id" jsonschema:"of a command that was returned with \"waiting\""`
}

func waitCommand(ctx context.Context, c call, in waitInput) (ran, error) {
	p := c.peer
	p.mu.Lock()
	l := p.left[in.Command]
	delete(p.left, in.Command)
	p.mu.Unlock()
	if l == nil {
		return ran{}, failure(codeUnknownCommand, fmt.Sprintf("no command %q of yours waits", text.Shorten(in.Command, 64)), "run it again with run_command")
	}
	return c.attend(ctx, l)
}
