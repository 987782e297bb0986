package main

import (
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/installer/all"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/plan"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// planFlags are what was typed. Those that runFlags has mean the same.
type planFlags struct {
	runFlags

	lock    string
	yes     bool
	request bool
	because string
}

func newPlan() *cobra.Command {
	var flags planFlags
	cmd := &cobra.Command{
		Use:     "plan [flags] -- COMMAND [ARGUMENT...]",
		Short:   "Say what an install would bring, and what the policy says of each part",
		GroupID: groupReview,
		Long: `Runs the command's own resolver in a separate sandbox and installs nothing. The
resolver sees what the policy would hold for a person, or denies only because no list
names it. So you get the whole tree: each release with its kind, size, age, scripts,
verdict, rule, and what wanted it. The resolver does not see what is blocked,
malicious, of another upstream, too young or of a refused kind.

The commands that can be planned: ` + plan.Plannable(all.Installers()) + `.

A project in a mount is copied inside. The mounts are read-only, and no file of the
host changes. A plan admits nothing: an install is decided anew.

--lock writes the lockfile in the client's own form (requirements.txt with hashes,
uv.lock, package-lock.json, pnpm-lock.yaml, go.sum), for --lockfile of a later run.
--request files all releases that would wait in the approval queue, as one group.

Exit code 0: an install would go through. 3: something would wait for a person, or
be refused. 1: no plan could be made, or the resolver names a release that the
gateway never showed. 2 and 126 are as with cofferdam run.`,
		Example: `  cofferdam plan --policy policy.yaml -- pip install rich
  cofferdam plan --policy policy.yaml --mount .:/workspace --lock requirements.txt -- pip install -r requirements.in
  cofferdam plan --policy policy.yaml --mount .:/workspace --json -- npm install express
  cofferdam plan --policy policy.yaml --request --because "charts for the report" -- pip install plotly
  cofferdam plan --policy policy.yaml --mount .:/workspace -- go get golang.org/x/text@latest`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, "no command given; write it after --, as in: cofferdam plan -- pip install rich")
			}
			if flags.because != "" && !flags.request {
				return usage(cmd, "--because is the reason of a --request, which is not given")
			}
			return planCommand(cmd.Context(), flags, args)
		},
	}
	flags.registerPlan(cmd)
	return cmd
}

func (f *planFlags) registerPlan(cmd *cobra.Command) {
	set := cmd.Flags()
	set.SetInterspersed(false) // the command's own flags are the command's
	set.StringVarP(&f.policy, "policy", "p", "", "policy document (default: a built-in one that allows no package)")
	set.StringArrayVarP(&f.locks, "lockfile", "l", nil, "plan an install that is held to a lockfile; may be repeated")
	set.StringVar(&f.lockMode, "lock-mode", "", "frozen or prefer, as with cofferdam run")
	set.StringVarP(&f.template, "template", "t", "", "root filesystem (see cofferdam template list)")
	set.StringVar(&f.engine, "engine", "", "what isolates the sandbox (default: what the policy asks for)")
	set.StringVar(&f.run, "run-id", "", "id of this run in the record (default: a new one)")
	set.StringVar(&f.task, "task", "", "what the install is for, in words, for the record")
	set.StringArrayVar(&f.mounts, "mount", nil, "show a host path inside, read-only: SOURCE:DESTINATION")
	set.StringArrayVarP(&f.env, "env", "e", nil, "set a variable inside: NAME=VALUE, or NAME to take the host's value")
	set.StringVarP(&f.workdir, "workdir", "w", "", "directory inside in which the command starts")
	set.DurationVar(&f.timeout, "timeout", 0, "end the resolver after this time, such as 90s or 5m (default: the policy's)")
	set.StringVar(&f.lock, "lock", "", "write the lockfile that the resolver made")
	set.BoolVar(&f.yes, "yes", false, "overwrite the file of --lock without asking")
	set.BoolVar(&f.request, "request", false, "file what would wait for a person in the approval queue")
	set.StringVar(&f.because, "because", "", "the reason that the person sees with --request")
	set.BoolVar(&f.json, "json", false, "print the plan as JSON")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	completePlan(cmd)
}

func completePlan(cmd *cobra.Command) {
	files := func(extensions ...string) complete {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return extensions, cobra.ShellCompDirectiveFilterFileExt
		}
	}
	register(cmd, "policy", files("yaml", "yml"))
	register(cmd, "lockfile", files("txt", "lock", "toml", "json", "yaml", "sum"))
	register(cmd, "lock", files("txt", "lock", "json", "yaml", "sum"))
	register(cmd, "lock-mode", fixed(string(policy.LockFrozen), string(policy.LockPrefer)))
	register(cmd, "template", completeTemplates)
	register(cmd, "engine", completeEngines)
	register(cmd, "run-id", completeRuns)
	for _, flag := range []string{"task", "env", "workdir", "timeout", "because"} {
		register(cmd, flag, cobra.NoFileCompletions)
	}
}

// exitPlanned is the code of a plan that would not go through as it is.
const exitPlanned = exitHeld

// planPatience bounds what comes after the resolver.
const planPatience = 2 * time.Minute
