package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newRun() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:     "run [flags] -- COMMAND [ARGUMENT...]",
		Short:   "Run a command in a sandbox of its own",
		GroupID: groupWork,
		Long: `Makes a sandbox, runs the command in it, and removes the sandbox when the command
has ended. The sandbox has no network. What package clients ask for comes through the
gateway, if the policy allows it. Nothing of the host is inside unless you --mount it,
and no environment variable unless you pass it with --env.

If stdin and stdout are terminals, the command gets one too. Otherwise its stdout and
stderr stay apart and stdin is passed on. The exit code is the command's own (see
"cofferdam help exit-codes").

Ctrl-C goes to the command. A second one within two seconds ends the sandbox. At a
terminal it does so only if the command reacts to neither, because in a shell or an
interpreter Ctrl-C only drops a line; five in a row always end the sandbox. SIGTERM
and SIGHUP end the sandbox. Another signal then cuts the summary short; the sandbox is
removed all the same.

If this program is killed or loses its connection, the sandbox ends half a minute later
(five minutes, if its command has not started yet), unless the run waits for an approval,
somebody else is attached to it, or you gave --keep.

With --lockfile, installs of its ecosystem are held to the releases and files in it,
whatever flags the client is given. It may be requirements.txt with hashes (any name
that ends in .txt), uv.lock, pylock.toml, package-lock.json, npm-shrinkwrap.json,
pnpm-lock.yaml or go.sum. It narrows the policy: what it names must be allowed there
too. Lockfiles that the policy names are read as well.

If the policy lets a person decide about a package, the run waits for that
(packages.on_hold), and a line on stderr says what it waits for and how to approve it.
Ctrl-C then leaves the run, with exit code 75: it waits on, and "cofferdam attach"
goes back to it. Closing the terminal does the same. With --detach-on-hold a run is
left as soon as something waits.

If the command needs paths of the host, mount them. With --mount .:/workspace:rw the
command starts in /workspace, because the current directory is there then. Without
such a mount it starts in its home.

With --workspace copy it works in a copy of the current directory instead, and nothing of
yours is written. At the end you see what has changed there; "cofferdam apply" brings
over what you want of it.

A cofferdam.yaml in this directory or above it can say all of this, once you have allowed
it: see "cofferdam project".

With --publish 8000 you reach a server inside, on its loopback interface or on all, at
the URL that is printed, until the run ends. You configure nothing, and only this host
can connect. --publish 8080:8000 chooses the host's port. If the policy says which
ports are published (published_ports, network.ingress), that holds.

While the command runs, its stderr is its own: Cofferdam writes there what needs you, and
no sign of life. A command that prints nothing for minutes, as npm install without a
terminal, is as silent here as it is anywhere; "cofferdam audit list --run ID" in another
shell lists what it has been given so far.
At the end, stderr says what was installed, withheld and refused. With --json that is
one line of JSON, the last of stderr:
  {"run", "sandbox", "command", "exit": {...}, "exit_code", "summary": {...}}
"changes" is what --workspace copy has found.
A run that was left waiting has "detached" and "holds" instead of an exit.`,
		Example: `  cofferdam run -- python3 -c 'print(40 + 2)'
  cofferdam run --policy policy.yaml -- sh -c 'pip install requests && python3 -c "import requests"'
  cofferdam run --policy policy.yaml --mount .:/workspace:rw -- python3 task.py
  cofferdam run --policy policy.yaml --lockfile uv.lock --mount .:/workspace:rw -- uv sync --frozen
  cofferdam run --agent claude --template dev --mount .:/workspace:rw -- npx claude
  cofferdam run --agent claude --workspace copy -- npx claude; cofferdam apply
  cofferdam run --publish 8000 -- python3 -m http.server 8000
  cofferdam run --timeout 5m --run-id nightly-42 --env MODE=test -- ./agent.sh
  cofferdam run --json -- pip install flask 2>report; tail -n 1 report`,
		RunE: func(cmd *cobra.Command, args []string) error {
			cwd, err := currentDirectory()
			if err != nil {
				return err
			}
			if args, err = flags.withProject(cmd, cwd, args); err != nil {
				return err
			}
			if len(args) == 0 {
				return usageError(cmd, "no command given; write it after --, as in: cofferdam run -- python3 task.py")
			}
			return runCommand(cmd.Context(), flags, cwd, args)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags.registerFlags(cmd)
	return cmd
}

func (f *runFlags) registerFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	set.SetInterspersed(false) // the command's own flags are the command's
	f.registerSandbox(cmd)
	set.StringVar(&f.agent, "agent", "", "an agent that the command is: it gets the names that it needs, if no --policy is given, and its variables (see cofferdam policy presets)")
	set.StringVar(&f.home, "home", "", "keep what the agent of --agent keeps below its home directory (its login, its settings) from one run to the next, under this name")
	set.StringArrayVar(&f.publish, "publish", nil, "bring a port of the sandbox to this host's loopback interface: PORT or HOSTPORT:PORT")
	spanVar(set, &f.timeout, "timeout", "end the command after this time, such as 90s or 5m (default: the policy's)")
	set.BoolVar(&f.json, "json", false, "tell the outcome as one line of JSON, the last of stderr")
	set.BoolVar(&f.keep, "keep", false, "let the run go on if this program is killed or its connection lost; cofferdam attach goes back to it")
	set.BoolVar(&f.detach, "detach-on-hold", false, "leave the run, with exit code 75, as soon as it waits for an approval")
	set.BoolVar(&f.noProject, "no-project", false, "leave a cofferdam.yaml of this directory aside (see cofferdam project)")
	set.StringVar(&f.workspace, "workspace", "", "copy: the command works in a copy of this directory, in /workspace; what it changes is shown at the end, and cofferdam apply brings it over")
	registerCompletion(cmd, "workspace", completeWords(workspaceCopy))
	registerCompletion(cmd, "agent", completeAgents)
	registerCompletion(cmd, "home", completeHomes)
	incomplete(cmd, "timeout", "publish")
}

// farewell bounds what happens after the command: its summary, and then the end of
// the sandbox.
const farewell = 2 * time.Minute

// runCommand runs `cofferdam run` once the flags are parsed.
func runCommand(ctx context.Context, flags runFlags, cwd string, argv []string) error {
	r := newRunner(flags, argv)
	var exit *api.Exit
	var err error
	if err = client.CheckText(api.StartCommand{Argv: argv}); err == nil { // before anything is made
		r.request, err = flags.sandboxRequest(cwd)
	}
	if err == nil {
		r.request.Lifetime.LeaseSeconds = flags.leaseSeconds()
		r.published, err = listenForPorts(ctx, flags.publish)
		tellOutside(flags.listShownPaths(cwd, r.request.Mounts), r.stderr.Say)
	}
	if err == nil {
		err = r.copyWorkspace(ctx, cwd)
	}
	if err == nil {
		defer unpublish(r.published)
		exit, err = r.runCommand(ctx)
		r.dropWorkspace()
	}
	if flags.json {
		err = r.tellJSON(ctx, exit, err)
	}
	return err
}

// runCommand returns the command's exit if there was one, and an *exitError unless
// all went well.
func (r *runner) runCommand(ctx context.Context) (*api.Exit, error) {
	bye, hurry := context.WithCancel(context.WithoutCancel(ctx))
	defer hurry()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r.end, r.hurry = end, hurry
	defer handleSignals(func(sig syscall.Signal) { r.signalled(ctx, sig) })()

	if err := r.beginRun(ctx); err != nil {
		return nil, withExitCode(ctx, exitOurs, err)
	}
	if r.attach != nil && r.attach.over {
		exit, err := r.tellOver(ctx)
		if err != nil && exit == nil {
			err = withExitCode(ctx, exitOurs, err)
		}
		return exit, err
	}
	exit, err := r.inSandbox(ctx)
	r.phase.Store(phaseFarewell)
	if _, left := errors.AsType[*detached](context.Cause(ctx)); left && exit == nil {
		return nil, r.printWayBack(bye)
	}
	bye, cancel := context.WithTimeout(bye, farewell)
	defer cancel()
	// A second signal cuts short what is told, and never the removal of what is left behind.
	clean, cleaned := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cleaned()
	err = r.sayNow(r.endedByPolicy(bye, exit, killed{r.client, r.box.Run, r.box.ID}.explainKill(bye, exit, err)))
	if !r.flags.json {
		r.printReport(bye, exit)
	}
	if r.box.Linger || destroyed(clean, r.client, r.box.ID, r.stderr.Say) {
		r.tellChanges(clean)
	}
	return exit, err
}

// beginRun makes the sandbox, or finds the one to go back to.
func (r *runner) beginRun(ctx context.Context) error {
	if r.attach != nil {
		return r.findRun(ctx)
	}
	return r.createSandbox(ctx)
}

// createSandbox finds the daemon and makes the sandbox.
func (r *runner) createSandbox(ctx context.Context) (err error) {
	if r.client, err = connectDaemon(ctx); err != nil {
		return err
	}
	list := func() ([]api.Secret, error) { return client.Secrets(ctx, r.client) }
	if err := r.flags.addAgentKeys(list, &r.request, r.stderr.Say); err != nil {
		return err
	}
	err = r.askForSandbox(ctx)
	built, buildErr := buildsMissing(ctx, r.client, r.request.Template, err)
	switch {
	case buildErr != nil:
		err = buildErr
	case built:
		err = r.askForSandbox(ctx)
	}
	if badSandbox(err) {
		return withExitCode(ctx, exitUsage, err)
	}
	if err != nil {
		return err
	}
	for _, note := range r.box.Notes {
		r.stderr.Say("note: %s", note)
	}
	tellMissing(r.client, r.box.Missing, r.stderr.Say)
	return nil
}

// askForSandbox has the daemon make the sandbox.
func (r *runner) askForSandbox(ctx context.Context) error {
	return ui.ShowWaiting("making a sandbox", func() error {
		box, err := r.client.CreateSandbox(ctx, r.request)
		if leaseUnknown(&r.request, err, r.stderr) {
			box, err = r.client.CreateSandbox(ctx, r.request)
		}
		r.noteSandbox(box)
		return err
	})
}

// inSandbox runs the command and says in an error what was out of the ordinary.
func (r *runner) inSandbox(ctx context.Context) (*api.Exit, error) {
	if r.attach == nil {
		if err := r.hooked(ctx, r.flags.hooks.Start); err != nil {
			return nil, withExitCode(ctx, exitOurs, err)
		}
	}
	start, err := r.prepareCommand()
	if err != nil {
		return nil, withExitCode(ctx, exitOurs, err)
	}
	defer r.restore()
	defer r.openPorts(ctx)()
	// The command may run before the answer that says so is here: a signal from
	// now on is for it, and waits until there is somebody to bring it.
	r.phase.Store(phaseCommand)
	if r.attach == nil {
		if err := r.startCommand(ctx, start); err != nil {
			return nil, withExitCode(ctx, exitOurs, err)
		}
	} else {
		r.resize(ctx) // the terminal may be another one
	}
	watching := r.watchHolds(ctx)
	exit, err := r.followCommand(ctx, start.Stdin, func(p []byte) []byte { return r.pressed(ctx, p) }, r.presses.output)
	watching()
	if err != nil {
		return nil, withExitCode(ctx, exitOurs, r.explainLoss(err))
	}
	r.restore() // the hooks write lines
	after := r.hooked(ctx, r.flags.hooks.End)
	if err := judgeExit(exit); err != nil || after == nil {
		return &exit, err
	}
	return &exit, withExitCode(ctx, exitOurs, after)
}

// prepareCommand takes the terminal, if there is one, and describes the command.
func (r *runner) prepareCommand() (api.StartCommand, error) {
	start := api.StartCommand{Argv: r.argv, Dir: r.request.Workdir, Stdin: ui.Readable(), TimeoutMS: wholeMilliseconds(r.flags.timeout)}
	if r.attach != nil && !r.attach.terminal {
		return start, nil // it was started without one
	}
	_, set := r.request.Env["TERM"]
	err := r.takeTerminal(&start, !set)
	r.presses.tty = r.tty != nil
	return start, err
}
