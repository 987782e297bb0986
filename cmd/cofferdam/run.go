package main

import (
	"time"

	"github.com/spf13/cobra"
)

// runFlags are what was typed, before anything is looked at.
type runFlags struct {
	policy   string
	locks    []string
	lockMode string
	template string
	engine   string
	run      string
	task     string
	mounts   []string
	publish  []string
	env      []string
	workdir  string
	timeout  time.Duration
	json     bool
	detach   bool // when something is held
}

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
and SIGHUP end the sandbox.

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

With --publish 8000 you reach a server inside, on its loopback interface or on all, at
the URL that is printed, until the run ends. You configure nothing, and only this host
can connect. --publish 8080:8000 chooses the host's port. If the policy says which
ports are published (published_ports, network.ingress), that holds.

At the end, stderr says what was installed, withheld and refused. With --json that is
one line of JSON, the last of stderr:
  {"run", "sandbox", "command", "exit": {...}, "exit_code", "summary": {...}}
A run that was left waiting has "detached" and "holds" instead of an exit.`,
		Example: `  cofferdam run -- python3 -c 'print(40 + 2)'
  cofferdam run --policy policy.yaml -- sh -c 'pip install requests && python3 -c "import requests"'
  cofferdam run --policy policy.yaml --mount .:/workspace:rw -- python3 task.py
  cofferdam run --policy policy.yaml --lockfile uv.lock --mount .:/workspace:rw -- uv sync --frozen
  cofferdam run --publish 8000 -- python3 -m http.server 8000
  cofferdam run --timeout 5m --run-id nightly-42 --env MODE=test -- ./agent.sh
  cofferdam run --json -- pip install flask 2>report; tail -n 1 report`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, "no command given; write it after --, as in: cofferdam run -- python3 task.py")
			}
			return runCommand(cmd.Context(), flags, args)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags.register(cmd)
	return cmd
}

func (f *runFlags) register(cmd *cobra.Command) {
	set := cmd.Flags()
	set.SetInterspersed(false) // the command's own flags are the command's
	set.StringVarP(&f.policy, "policy", "p", "", "policy document (default: a built-in one that allows no package)")
	set.StringArrayVarP(&f.locks, "lockfile", "l", nil, "hold installations to a lockfile; may be repeated")
	set.StringVar(&f.lockMode, "lock-mode", "", "frozen: nothing outside the lockfiles; prefer: other names as the policy says (default: the policy's, or frozen)")
	set.StringVarP(&f.template, "template", "t", "", "root filesystem (see cofferdam template list)")
	set.StringVar(&f.engine, "engine", "", "what isolates the sandbox (default: what the policy asks for)")
	set.StringVar(&f.run, "run-id", "", "id of this run in the record (default: a new one)")
	set.StringVar(&f.task, "task", "", "what the run is for, in words, for the record")
	set.StringArrayVar(&f.mounts, "mount", nil, "show a host path inside: SOURCE:DESTINATION[:rw], read-only without :rw")
	set.StringArrayVar(&f.publish, "publish", nil, "bring a port of the sandbox to this host's loopback interface: PORT or HOSTPORT:PORT")
	set.StringArrayVarP(&f.env, "env", "e", nil, "set a variable inside: NAME=VALUE, or NAME to take the host's value")
	set.StringVarP(&f.workdir, "workdir", "w", "", "directory inside in which the command starts")
	set.DurationVar(&f.timeout, "timeout", 0, "end the command after this time, such as 90s or 5m (default: the policy's)")
	set.BoolVar(&f.json, "json", false, "tell the outcome as one line of JSON, the last of stderr")
	set.BoolVar(&f.detach, "detach-on-hold", false, "leave the run, with exit code 75, as soon as it waits for an approval")
	completeRun(cmd)
}
