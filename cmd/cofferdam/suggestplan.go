package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/refusal"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// maxTrials bounds how often a suggestion is tried and mended.
const maxTrials = 4

// projectInstall is an install as the run had it, with the mounts that it needs.
type projectInstall struct {
	argv    []string
	request api.CreateSandbox
}

// installsIn are the installs that a command is, or that a text has which it hands to a shell, each with where it starts: all of
// them are tried but rest, which are more than one suggestion tries. The shell's other commands are not run, so that a later install is
// tried without their effects.
func installsIn(argv []string, request api.CreateSandbox) (tried, rest []projectInstall, err error) {
	if len(argv) == 0 {
		return nil, nil, nil
	}
	if _, err = plan.Of(all.Installers(), argv, projectOf(request)); err == nil {
		return []projectInstall{{argv, request}}, nil, nil
	}
	var mounts []string
	for _, m := range request.Mounts {
		mounts = append(mounts, m.Destination)
	}
	some, more := plan.Installs(all.Installers(), argv, request.Workdir, mounts)
	if len(some) == 0 {
		return nil, nil, err
	}
	return startingAt(request, some), startingAt(request, more), nil
}

// startingAt are installs with the sandboxes in which each is tried.
func startingAt(request api.CreateSandbox, installs []plan.Install) (all []projectInstall) {
	for _, in := range installs {
		one := request
		one.Workdir = in.Dir
		own := slices.Clone(in.Argv)
		own[0] = path.Base(own[0]) // the client of a virtual environment, which the trial's sandbox need not have
		all = append(all, projectInstall{own, one})
	}
	return all
}

// untried is a sentence about installs that are more than one suggestion tries, with the command that tries the first of them, if a
// terminal can be shown that as it is; none: "".
func (f *suggestFlags) untried(rest []projectInstall) string {
	if len(rest) == 0 {
		return ""
	}
	words := []string{"cofferdam", "policy", "suggest", "--run", f.run}
	for _, m := range f.mounts {
		words = append(words, "--mount", m)
	}
	if dir := rest[0].request.Workdir; dir != "" {
		words = append(words, "--workdir", dir)
	}
	which, them := ui.ShellWords(rest[0].argv), "try it by itself"
	if more := len(rest) - 1; more > 0 {
		which, them = fmt.Sprintf("%s and %d more behind it", which, more), "try each by itself"
	}
	said := fmt.Sprintf("%s: not tried, since one suggestion tries %d installs; %s", which, plan.MaxInstalls, them)
	if words = append(append(words, "--"), rest[0].argv...); isShownAsIs(words) {
		said += ": " + ui.ShellLine(words)
	}
	return said
}

// isShownAsIs tells whether a shell gets just these words from their printed line: what no terminal is sent is escaped in it, and
// a shell takes the escape for other characters.
func isShownAsIs(words []string) bool {
	line := ui.ShellLine(words)
	return ui.Printable(line) == line
}

// suggestion asks for a run's suggestion and has it tried: what the run asked for is planned under it, and
// the versions and all that is still missing come from that, until nothing is. last is what the last trial
// showed of it. Without installs the packages are installed by name that the run was refused.
func suggestion(ctx context.Context, c *client.Client, run string, of []projectInstall) (s api.Suggestion, last trial, err error) {
	if s, err = askSuggestion(ctx, c, run); err != nil {
		return s, last, err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	var plans []string
	for range maxTrials {
		if len(of) == 0 && len(s.Roots) == 0 && len(plans) == 0 && bytes.Equal(s.Document, s.Suggested) {
			return s, last, nil
		}
		last = tryUnder(ctx, c, run, s, of)
		if ctx.Err() != nil {
			return s, last, &exitError{code: exitSignalBase + int(syscall.SIGINT), err: errors.New("the suggestion was given up")}
		}
		plans = append(plans, last.runs...)
		next, err := askSuggestion(ctx, c, run, plans...)
		if err != nil {
			return s, last, err
		}
		narrower := len(next.Roots) < len(s.Roots) // and not tried like that
		if len(last.still) == 0 && !narrower || bytes.Equal(next.Suggested, s.Suggested) {
			return next, last, nil
		}
		s = next
	}
	return s, last, nil
}

func askSuggestion(ctx context.Context, c *client.Client, run string, plans ...string) (api.Suggestion, error) {
	short, cancel := withQuickTimeout(ctx)
	defer cancel()
	return c.Suggest(short, run, plans...)
}

// trial is what became of the installs that a suggestion was tried with.
type trial struct {
	runs  []string // of the plans, made or not
	still []string // what they were refused, a sentence each: then the same install fails under the suggestion, too
	// open are sentences about what they leave unknown: the install may fail, or not.
	open []string
}

// tryUnder plans a run's installs under a suggestion.
func tryUnder(ctx context.Context, c *client.Client, run string, s api.Suggestion, of []projectInstall) (t trial) {
	installs := of
	if len(installs) == 0 {
		for _, argv := range installsOf(s.Roots) {
			installs = append(installs, projectInstall{argv: argv})
		}
	}
	if len(installs) == 0 {
		t.open = []string{notTried(run)}
	}
	for _, install := range installs {
		argv := install.argv
		fmt.Fprintf(os.Stderr, "cofferdam: resolving in a sandbox, under what is suggested: %s; nothing is installed\n", ui.Printable(ui.ShellWords(argv)))
		made, planned, err := planSuggestion(ctx, run, s, argv, install.request)
		if planned != "" {
			t.runs = append(t.runs, planned)
		}
		if err == nil {
			refused, unweighed := refusedIn(made)
			t.still, t.open = append(t.still, refused...), append(t.open, unweighed...)
			continue
		}
		refused := causesOf(ctx, c, planned)
		if t.still = append(t.still, refused...); len(refused) == 0 {
			t.open = append(t.open, ui.ShellWords(argv)+" could not be resolved: "+err.Error())
		}
	}
	return t
}

// notTried says how a suggestion is tried that has no package's name to try: by the install of the run's project.
func notTried(run string) string {
	words := "cofferdam policy suggest"
	if run != "" {
		words += " --run " + ui.Quoted(run)
	}
	return "it was not tried, since nothing here says by which install; to have it tried, name that and the run's mounts, as in: " + words + " --mount .:/workspace -- npm install"
}

// refusedIn are sentences about what a plan was refused, and about what nothing is known of: that may be refused as
// well, or not, so that it keeps nobody from a suggestion.
func refusedIn(made api.Plan) (refused, unweighed []string) {
	for _, r := range made.Releases {
		line := fmt.Sprintf("%s %s %s: %s", r.Ecosystem, r.Name, r.Version, r.Reason)
		switch {
		case r.Effect == plan.EffectError:
			unweighed = append(unweighed, line)
		case r.Effect != plan.EffectAllow && r.Effect != plan.EffectHold || r.Would != "":
			refused = append(refused, line)
		}
	}
	return refused, unweighed
}

// sayOpen tells, beside a suggestion, what its trial left unknown, a few of it.
func sayOpen(w io.Writer, lines []string) {
	const most = 3
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(w, "cofferdam: the same install may still fail under this: its trial does not show that it goes through")
	for _, line := range lines[:min(len(lines), most)] {
		fmt.Fprintf(w, "cofferdam: not known: %s\n", ui.Printable(line))
	}
	if len(lines) > most {
		fmt.Fprintf(w, "cofferdam: and %d more that are not known\n", len(lines)-most)
	}
}

// causesOf are sentences about what a run was refused that may be why it failed.
func causesOf(ctx context.Context, c *client.Client, run string) (refused []string) {
	short, cancel := withQuickTimeout(ctx)
	defer cancel()
	all, err := c.Refusals(short, client.RefusalFilter{Run: run, Causes: true})
	if run == "" || err != nil {
		return nil // then the plan's own error is told
	}
	for _, r := range all.Refusals {
		if r.Cause && r.Package.Name != "" {
			refused = append(refused, refusal.Subject(refusalOf(r))+": "+r.Reason)
		}
	}
	return refused
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

// planSuggestion makes the plan of an install under a suggested policy. run is the plan's own, as soon as
// there is one.
func planSuggestion(ctx context.Context, of string, s api.Suggestion, argv []string, request api.CreateSandbox) (made api.Plan, run string, err error) {
	p := &planner{argv: argv, stderr: ui.NewStderr(io.Discard), request: request}
	// The document is no file's: nobody has put it where the policy is.
	p.request.Plan, p.request.Policy, p.request.Task = true, api.Policy{Document: s.Suggested}, "cofferdam policy suggest --run "+of
	if p.request.Template == "" {
		p.request.Template = s.Template
	}
	if p.rewrite, err = plan.Of(all.Installers(), argv, projectOf(p.request)); err != nil {
		return api.Plan{}, "", err
	}
	if err := p.createSandbox(ctx); err != nil {
		return api.Plan{}, "", err
	}
	defer p.destroy(context.WithoutCancel(ctx))
	made, _, _, err = p.weighPlan(ctx)
	return made, p.box.Run, err
}
