package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// execFlags are those of `exec` and `shell`.
type execFlags struct {
	input, tty, detach bool
	env                []string
	workdir, user      string
	timeout            time.Duration
}

func (f *execFlags) registerFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringArrayVarP(&f.env, "env", "e", nil, "set a variable inside: NAME=VALUE, or NAME to take this shell's value")
	set.StringVarP(&f.workdir, "workdir", "w", "", "directory inside in which it starts")
	set.StringVarP(&f.user, "user", "u", "", "user inside: root, the sandbox's own, or a user's number")
	registerCompletion(cmd, "user", completeWords("root"))
	incomplete(cmd, "env", "workdir")
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
"cofferdam audit list --run" lists what it installs. An alarm that came meanwhile is
told on stderr, however the command ended.`,
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
			return flags.runExec(cmd.Context(), args[0], args[1:])
		},
		ValidArgsFunction: completeFirst(completeSandboxes),
	}
	set := cmd.Flags()
	set.SetInterspersed(false) // the command's own flags are the command's
	set.BoolVarP(&flags.input, "interactive", "i", false, "pass stdin on")
	set.BoolVarP(&flags.tty, "tty", "t", false, "give it this terminal")
	set.BoolVarP(&flags.detach, "detach", "d", false, "start it, write its id, and leave it")
	spanVar(set, &flags.timeout, "timeout", "end the command after this time, such as 90s or 5m (default: the policy's)")
	incomplete(cmd, "timeout")
	flags.registerFlags(cmd)
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
				return usageError(cmd, "the shell %q has to be an absolute path inside, such as /bin/sh", shell)
			}
			return flags.runExec(cmd.Context(), args[0], []string{shell, "-l"})
		},
		ValidArgsFunction: completeFirst(completeSandboxes),
	}
	cmd.Flags().StringVar(&shell, "shell", "/bin/bash", "which shell")
	registerCompletion(cmd, "shell", completeWords("/bin/bash", "/bin/sh"))
	flags.registerFlags(cmd)
	return cmd
}

// runExec runs one `cofferdam exec` or `shell`.
func (f execFlags) runExec(ctx context.Context, sandbox string, argv []string) error {
	start, err := f.request(argv)
	if err == nil {
		err = client.CheckText(start)
	}
	if err != nil {
		return err
	}
	x := newForeground()
	x.sandbox = sandbox
	if x.client, err = connectDaemon(ctx); err != nil {
		return &exitError{code: exitOurs, err: err}
	}
	if f.detach {
		if err := startIn(ctx, x, start); err != nil {
			return err
		}
		_, err := fmt.Println(ui.Printable(x.command))
		return err
	}
	return f.attend(ctx, x, start)
}

// request describes the command; all that can be wrong with it here is found
// before anything is started.
func (f execFlags) request(argv []string) (api.StartCommand, error) {
	start := api.StartCommand{Argv: argv, Dir: f.workdir, User: f.user, Stdin: f.input}
	if f.timeout < 0 {
		return start, fault.Invalid("--timeout is %s; it must be above 0, such as 90s or 5m", f.timeout)
	}
	start.TimeoutMS = wholeMilliseconds(f.timeout)
	switch {
	case f.detach && (f.input || f.tty):
		return start, fault.Invalid("--detach leaves the command without input; leave out -i and -t")
	case f.tty && !f.input:
		return start, fault.Invalid("-t needs -i, as in cofferdam exec -it")
	case f.tty && (!ui.IsTerminal(os.Stdin) || !ui.IsTerminal(os.Stdout)):
		return start, fault.Invalid("there is no terminal here to give to the command; leave out -t, or use exec -i in the place of shell")
	}
	var err error
	start.Env, err = parseEnv(f.env)
	return start, err
}

// startIn starts a command in a sandbox that somebody named, maybe wrongly.
func startIn(ctx context.Context, x *foreground, start api.StartCommand) error {
	err := x.startCommand(ctx, start)
	if client.StatusOf(err) == http.StatusNotFound {
		return &exitError{code: exitUsage, err: errors.Unwrap(err)}
	}
	return err
}

// attend starts the command and stays with it.
func (f execFlags) attend(ctx context.Context, x *foreground, start api.StartCommand) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.tty {
		_, set := start.Env["TERM"]
		if err := x.takeTerminal(&start, !set); err != nil {
			return &exitError{code: exitOurs, err: err}
		}
	}
	defer x.restore()
	// From here on a signal is the command's, also one that comes before it runs.
	defer handleSignals(func(sig syscall.Signal) {
		if sig == syscall.SIGWINCH {
			x.resize(ctx)
			return
		}
		x.sendSignal(ctx, unix.SignalName(sig)[len("SIG"):])
	})()
	news := watchAlarms(ctx, x.client, x.sandbox)
	err := startIn(ctx, x, start)
	if err != nil {
		return err
	}
	exit, err := x.followCommand(ctx, start.Stdin, func(p []byte) []byte { return p }, func([]byte) {})
	if err != nil {
		return x.explainLoss(err)
	}
	// Why it was killed is asked first: a sandbox that ends can't be asked for long.
	err = killed{client: x.client, sandbox: x.sandbox}.explainKill(ctx, &exit, judgeExit(exit))
	for _, line := range news.listNewAlarms(ctx) {
		x.stderr.Say("%s", line)
	}
	return err
}
