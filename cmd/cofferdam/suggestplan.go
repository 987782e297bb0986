package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/plan"
)

// suggestion asks for a run's suggestion and has it resolved: what the run asked for is
// planned under it, and the versions and all that is still missing come from that.
func suggestion(ctx context.Context, c *client.Client, run string, resolve bool) (api.Suggestion, error) {
	quick, cancel := notTooLong(ctx)
	defer cancel()
	s, err := c.Suggest(quick, run)
	if err != nil || !resolve || len(s.Roots) == 0 || bytes.Equal(s.Document, s.Suggested) {
		return s, err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var plans []string
	for _, argv := range installsOf(s.Roots) {
		fmt.Fprintf(os.Stderr, "cofferdam: resolving in a sandbox, under what is suggested: %s; nothing is installed\n", printable(shellWords(argv)))
		made, err := planSuggestion(ctx, run, s, argv)
		if ctx.Err() != nil {
			return s, &exitError{code: exitSignalBase + int(syscall.SIGINT), err: errors.New("the suggestion was given up")}
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "cofferdam: it could not be resolved, so that more may be refused next time: %s\n", printable(err.Error()))
			continue
		}
		plans = append(plans, made.Run)
	}
	if len(plans) == 0 {
		return s, nil
	}
	quick, cancel = notTooLong(ctx)
	defer cancel()
	return c.Suggest(quick, run, plans...)
}

// installsOf are commands that install what a run asked for, one for each ecosystem: in
// the words of the run's own commands, as far as these are known.
func installsOf(roots []api.SuggestedRoot) [][]string {
	var all [][]string
	for _, kind := range []struct {
		ecosystem pkgref.Ecosystem
		command   []string
		equals    string
		newest    string
	}{
		{pkgref.Python, []string{"pip", "install"}, "==", ""},
		{pkgref.Node, []string{"npm", "install"}, "@", ""},
		{pkgref.Go, []string{"go", "install"}, "@", "@latest"},
	} {
		argv := slices.Clone(kind.command)
		for _, root := range roots {
			if root.Ecosystem != string(kind.ecosystem) {
				continue
			}
			word := root.Asked
			switch {
			case word == "" && root.Version != "":
				word = root.Name + kind.equals + root.Version
			case word == "":
				word = root.Name
			}
			if kind.newest != "" && !strings.Contains(word, "@") {
				word += kind.newest
			}
			argv = append(argv, word)
		}
		if len(argv) > len(kind.command) {
			all = append(all, argv)
		}
	}
	return all
}

// planSuggestion makes the plan of an install under a suggested policy.
func planSuggestion(ctx context.Context, run string, s api.Suggestion, argv []string) (api.Plan, error) {
	p := &planner{argv: argv, voice: &voice{w: io.Discard}}
	p.request = api.CreateSandbox{
		Plan: true, Template: s.Template, Task: "cofferdam policy suggest --run " + run, Policy: api.Policy{Document: s.Suggested},
	}
	if filepath.IsAbs(s.Source) {
		p.request.Policy.Source = s.Source
	}
	var err error
	if p.rewrite, err = plan.Of(argv, plan.Project{}); err != nil {
		return api.Plan{}, err
	}
	if err := p.create(ctx); err != nil {
		return api.Plan{}, err
	}
	defer p.destroy(context.WithoutCancel(ctx))
	made, _, _, err := p.weigh(ctx)
	return made, err
}
