package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
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
				return usageError(cmd, "no command given; write it after --, as in: cofferdam plan -- pip install rich")
			}
			if flags.because != "" && !flags.request {
				return usageError(cmd, "--because is the reason of a --request, which is not given")
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
	f.registerSandbox(cmd)
	describeFlags(cmd, map[string]string{
		"lockfile": "plan an install that is held to a lockfile; may be repeated", "lock-mode": "frozen or prefer, as with cofferdam run",
		"task": "what the install is for, in words, for the record", "mount": "show a host path inside, read-only: SOURCE:DESTINATION",
	})
	spanVar(set, &f.timeout, "timeout", "end the resolver after this time, such as 90s or 5m (default: the policy's)")
	set.StringVar(&f.lock, "lock", "", "write the lockfile that the resolver made")
	set.BoolVar(&f.yes, "yes", false, "overwrite the file of --lock without asking")
	set.BoolVar(&f.request, "request", false, "file what would wait for a person in the approval queue")
	set.StringVar(&f.because, "because", "", "the reason that the person sees with --request")
	set.BoolVar(&f.json, "json", false, "print the plan as JSON")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	registerCompletion(cmd, "lock", completeFiles("txt", "lock", "json", "yaml", "sum"))
	incomplete(cmd, "timeout", "because")
}

// exitPlanned is the code of a plan that would not go through as it is.
const exitPlanned = exitHeld

// planTimeout bounds what comes after the resolver.
const planTimeout = 2 * time.Minute

// planCommand runs `cofferdam plan` once the flags are parsed. All that can be
// wrong with them is found before anything is made.
func planCommand(ctx context.Context, flags planFlags, argv []string) error {
	cwd, err := currentDirectory()
	if err != nil {
		return err
	}
	p := &planner{flags: flags, argv: argv, stderr: ui.NewStderr(os.Stderr)}
	if p.request, err = flags.sandboxRequest(cwd); err != nil {
		return err
	}
	p.request.Plan = true
	for i := range p.request.Mounts {
		p.request.Mounts[i].ReadWrite = false
	}
	if p.rewrite, err = plan.Of(all.Installers(), argv, projectOf(p.request)); err != nil {
		return err
	}
	if err := p.mayRun(); err != nil {
		return err
	}
	if flags.lock != "" {
		if p.lock, err = newLockTarget(cwd, flags.lock, p.rewrite.Resolver, flags.yes); err != nil {
			return err
		}
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	return p.runPlan(ctx)
}

func (p *planner) runPlan(ctx context.Context) error {
	if err := p.createSandbox(ctx); err != nil {
		return err
	}
	defer p.destroy(context.WithoutCancel(ctx))
	if !p.flags.json {
		p.stderr.Say("resolving in sandbox %s (run %s); nothing is installed", p.box.ID, p.box.Run)
	}
	made, docs, result, err := p.weighPlan(ctx)
	if err != nil {
		return err
	}
	if err := p.printPlan(made); err != nil {
		return err
	}
	if p.lock != nil {
		if err := p.writeLock(ctx, made, docs, result); err != nil {
			return err
		}
	}
	return judgePlan(made)
}
