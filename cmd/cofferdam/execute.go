package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// execFlags are those of `exec` and `shell`.
type execFlags struct {
	input, tty, detach bool
	env                []string
	workdir, user      string
	timeout            time.Duration
}

func (f *execFlags) register(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringArrayVarP(&f.env, "env", "e", nil, "set a variable inside: NAME=VALUE, or NAME to take this shell's value")
	set.StringVarP(&f.workdir, "workdir", "w", "", "directory inside in which it starts")
	set.StringVarP(&f.user, "user", "u", "", "user inside: root, the sandbox's own, or a user's number")
	register(cmd, "user", fixed("root"))
	for _, flag := range []string{"env", "workdir"} {
		register(cmd, flag, cobra.NoFileCompletions)
	}
}

func newExec() *cobra.Command {
	var flags execFlags
	cmd := &cobra.Command{
		Use:     "exec [flags] SANDBOX -- COMMAND [ARGUMENT...]",
		Short:   "Run a command in a sandbox that is there",
		GroupID: groupWork,
		Long: `Runs a command in a sandbox and exits with its exit code. Its stdout and stderr stay
apart. -i passes stdin on, and -t gives it a terminal, as in
"cofferdam exec -it SANDBOX -- python3". Ctrl-C, SIGTERM and SIGHUP go to the command.
If this program is killed, the command runs on; "cofferdam logs" shows the rest.

With --detach it starts the command and prints its id, for "cofferdam logs".
"cofferdam audit list --run" lists what it installs.`,
		Example: `  cofferdam exec sb4f1c -- python3 -V
  cofferdam exec -it sb4f1c -- python3
  cofferdam exec -i sb4f1c -- sh -c 'cat > notes.txt' <notes.txt
  cofferdam exec --detach sb4f1c -- ./server.sh`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(withoutDashes(args)) < 2 {
				return errors.New("name a sandbox and a command, as in: cofferdam exec sb4f1c -- python3 -V")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			args = withoutDashes(args)
			return flags.run(cmd.Context(), args[0], args[1:])
		},
		ValidArgsFunction: once(completeSandboxes),
	}
	set := cmd.Flags()
	set.SetInterspersed(false) // the command's own flags are the command's
	set.BoolVarP(&flags.input, "interactive", "i", false, "pass stdin on")
	set.BoolVarP(&flags.tty, "tty", "t", false, "give it this terminal")
	set.BoolVarP(&flags.detach, "detach", "d", false, "start it, write its id, and leave it")
	set.DurationVar(&flags.timeout, "timeout", 0, "end the command after this time, such as 90s or 5m (default: the policy's)")
	register(cmd, "timeout", cobra.NoFileCompletions)
	flags.register(cmd)
	return cmd
}

// withoutDashes takes the "--" after the sandbox away, which is left there where
// flags may not stand among the arguments.
func withoutDashes(args []string) []string {
	if len(args) > 1 && args[1] == "--" {
		return slices.Concat(args[:1], args[2:])
	}
	return args
}

func newShell() *cobra.Command {
	flags := execFlags{input: true, tty: true}
	var shell string
	cmd := &cobra.Command{
		Use:     "shell [flags] SANDBOX",
		Short:   "Open a shell in a sandbox",
		GroupID: groupWork,
		Long: `Opens a login shell in a sandbox, with this terminal and its size. The exit code is
the shell's.`,
		Example: "  cofferdam shell sb4f1c\n  cofferdam shell --user root sb4f1c",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !path.IsAbs(shell) {
				return usage(cmd, "the shell %q has to be an absolute path inside, such as /bin/sh", shell)
			}
			return flags.run(cmd.Context(), args[0], []string{shell, "-l"})
		},
		ValidArgsFunction: once(completeSandboxes),
	}
	cmd.Flags().StringVar(&shell, "shell", "/bin/bash", "which shell")
	register(cmd, "shell", fixed("/bin/bash", "/bin/sh"))
	flags.register(cmd)
	return cmd
}

// execution is one `cofferdam exec`.
type execution struct {
	flags   execFlags
	client  *client.Client
	box     string
	voice   *voice
	tty     *terminal // nil: none
	session *session
}

func (f execFlags) run(ctx context.Context, box string, argv []string) error {
	start, err := f.request(argv)
	if err != nil {
		return err
	}
	c, err := connect(ctx)
	if err != nil {
		return &exitError{code: exitOurs, err: err}
	}
	x := &execution{flags: f, client: c, box: box, voice: &voice{w: os.Stderr}, session: newSession()}
	if f.detach {
		return x.leave(ctx, start)
	}
	return x.run(ctx, start)
}

// request describes the command; all that can be wrong with it here is found
// before anything is started.
func (f execFlags) request(argv []string) (api.StartCommand, error) {
	start := api.StartCommand{Argv: argv, Dir: f.workdir, User: f.user, Stdin: f.input}
	if f.timeout < 0 {
		return start, fault.Invalid("--timeout is %s; it must be above 0, such as 90s or 5m", f.timeout)
	}
	start.TimeoutMS = (f.timeout + time.Millisecond - 1).Milliseconds()
	switch {
	case f.detach && (f.input || f.tty):
		return start, fault.Invalid("--detach leaves the command without input; leave out -i and -t")
	case f.tty && !f.input:
		return start, fault.Invalid("-t needs -i, as in cofferdam exec -it")
	case f.tty && (!term.IsTerminal(descriptor(os.Stdin)) || !term.IsTerminal(descriptor(os.Stdout))):
		return start, fault.Invalid("there is no terminal here to give to the command; leave out -t, or use exec -i in the place of shell")
	}
	var err error
	start.Env, err = parseEnv(f.env)
	return start, err
}

// leave starts the command and writes its id.
func (x *execution) leave(ctx context.Context, start api.StartCommand) error {
	command, err := x.start(ctx, start)
	if err != nil {
		return err
	}
	_, err = fmt.Println(printable(command.ID))
	return err
}

func (x *execution) run(ctx context.Context, start api.StartCommand) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if x.flags.tty {
		tty, err := openTerminal()
		if err != nil || tty == nil {
			return &exitError{code: exitOurs, err: fmt.Errorf("take the terminal: %w", err)}
		}
		x.tty = tty
		x.voice.setRaw(true)
		start.Rows, start.Cols = tty.size()
		if _, set := start.Env["TERM"]; !set {
			start.Env = with(start.Env, "TERM", termName())
		}
	}
	// From here on a signal is the command's, also one that comes before it runs.
	defer x.watchSignals(ctx)()
	exit, err := x.follow(ctx, start)
	x.tty.restore()
	x.voice.setRaw(false)
	if err != nil {
		return x.lost(err)
	}
	return deathbed{client: x.client, sandbox: x.box}.obituary(ctx, &exit, judge(exit))
}

func with(env map[string]string, name, value string) map[string]string {
	if env == nil {
		env = map[string]string{}
	}
	env[name] = value
	return env
}

func (x *execution) start(ctx context.Context, start api.StartCommand) (api.Command, error) {
	command, err := x.client.StartCommand(ctx, x.box, start)
	switch status := client.StatusOf(err); {
	case err == nil:
		return command, nil
	case status == http.StatusForbidden:
		return command, &exitError{code: exitRefused, err: err}
	case status == http.StatusBadRequest, status == http.StatusNotFound:
		return command, &exitError{code: exitUsage, err: err}
	}
	return command, &exitError{code: exitOurs, err: err}
}

func (x *execution) follow(ctx context.Context, start api.StartCommand) (api.Exit, error) {
	command, err := x.start(ctx, start)
	if err != nil {
		return api.Exit{}, err
	}
	s := x.session
	s.out, s.err, s.say = os.Stdout, x.voice, x.voice.say
	if x.tty != nil {
		s.out = x.voice.beside(os.Stdout)
	}
	s.attach = func(ctx context.Context, offset int64) (*client.Attachment, error) {
		return ask(ctx, x.client, func(c *client.Client) (*client.Attachment, error) { return c.Attach(ctx, x.box, command.ID, offset) })
	}
	if start.Stdin {
		// Not waited for: a read of stdin can't be taken back.
		go s.pump(ctx, os.Stdin, func(p []byte) []byte { return p })
	}
	return s.follow(ctx)
}

// watchSignals hands the process's signals to the command until the returned
// function is called.
func (x *execution) watchSignals(ctx context.Context) (stop func()) {
	signals := make(chan os.Signal, 16)
	// As of run, SIGPIPE is asked for so that a write to a closed stdout fails.
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGWINCH, syscall.SIGPIPE)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case got := <-signals:
				x.signalled(ctx, got)
			case <-quit:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(quit)
		<-done
	}
}

// signalled does not wait: the connection may be full of input that the command
// does not read.
func (x *execution) signalled(ctx context.Context, got os.Signal) {
	sig, ok := got.(syscall.Signal)
	switch {
	case !ok || sig == syscall.SIGPIPE:
	case sig == syscall.SIGWINCH && x.tty != nil:
		go func() {
			_ = x.session.send(ctx, func(link *client.Attachment) error {
				rows, cols := x.tty.size() // asked last, so that the last one sent is the newest
				return link.Resize(rows, cols)
			})
		}()
	case sig != syscall.SIGWINCH:
		name := unix.SignalName(sig)[len("SIG"):]
		go func() {
			_ = x.session.send(ctx, func(link *client.Attachment) error { return link.Signal(name) })
		}()
	}
}

// lost says why a command's end is not known.
func (x *execution) lost(err error) error {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e
	}
	if output, ok := errors.AsType[*outputError](err); ok && errors.Is(output.err, syscall.EPIPE) {
		return &exitError{code: exitPipe}
	}
	return &exitError{code: exitOurs, err: fmt.Errorf("the command in sandbox %s was lost: %w", x.box, err)}
}
