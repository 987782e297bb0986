package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/internal/installer"
	"github.com/cofferdam-dev/cofferdam/internal/installer/all"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/plan"
	"github.com/cofferdam-dev/cofferdam/internal/ui"
)

// suggestion asks for a run's suggestion and has it resolved: what the run asked for is
// planned under it, and the versions and all that is still missing come from that.
func suggestion(ctx context.Context, c *client.Client, run string, resolve bool) (api.Suggestion, error) {
	short, cancel := quick(ctx)
	defer cancel()
	s, err := c.Suggest(short, run)
	if err != nil || !resolve || len(s.Roots) == 0 || bytes.Equal(s.Document, s.Suggested) {
		return s, err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	var plans []string
	for _, argv := range installsOf(s.Roots) {
		fmt.Fprintf(os.Stderr, "cofferdam: resolving in a sandbox, under what is suggested: %s; nothing is installed\n", ui.Printable(ui.ShellWords(argv)))
		made, err := planSuggestion(ctx, run, s, argv)
		if ctx.Err() != nil {
			return s, &exitError{code: exitSignalBase + int(syscall.SIGINT), err: errors.New("the suggestion was given up")}
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "cofferdam: it could not be resolved, so that more may be refused next time: %s\n", ui.Printable(err.Error()))
			continue
		}
		plans = append(plans, made.Run)
	}
	if len(plans) == 0 {
		return s, nil
	}
	short, cancel = quick(ctx)
	defer cancel()
	return c.Suggest(short, run, plans...)
}

// installsOf are commands that install what a run asked for, one for each ecosystem: in
// the words of the run's own commands, as far as these are known.
func installsOf(roots []api.SuggestedRoot) [][]string {
	var installs [][]string
	for _, i := range all.Installers() {
		var wanted []installer.Wanted
		for _, root := range roots {
			if root.Ecosystem == string(i.Ecosystem()) {
				wanted = append(wanted, installer.Wanted{Name: root.Name, Version: root.Version, Asked: root.Asked})
			}
		}
		if len(wanted) == 0 {
			continue
		}
		if argv := i.Install(wanted); argv != nil {
			installs = append(installs, argv)
		}
	}
	return installs
}

// planSuggestion makes the plan of an install under a suggested policy.
func planSuggestion(ctx context.Context, run string, s api.Suggestion, argv []string) (api.Plan, error) {
	p := &planner{argv: argv, stderr: ui.NewStderr(io.Discard)}
	p.request = api.CreateSandbox{
		// The document is no file's: nobody has put it where the policy is.
		Plan: true, Template: s.Template, Task: "cofferdam policy suggest --run " + run, Policy: api.Policy{Document: s.Suggested},
	}
	var err error
	if p.rewrite, err = plan.Of(all.Installers(), argv, installer.Project{}); err != nil {
		return api.Plan{}, err
	}
	if err := p.create(ctx); err != nil {
		return api.Plan{}, err
	}
	defer p.destroy(context.WithoutCancel(ctx))
	made, _, _, err := p.weigh(ctx)
	return made, err
}
