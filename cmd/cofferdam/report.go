package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// reportRows bounds each part of the table at the end of a run; the record has
// the rest.
const reportRows = 16

// printReport says what became of the run's packages, and what may have been missing.
func (r *runner) printReport(ctx context.Context, exit *api.Exit) {
	summary, err := r.ending(ctx)
	if err != nil {
		r.stderr.Say("the summary of run %s is not available: %s", r.box.Run, err)
		return
	}
	colours := ui.Coloured(os.Stderr)
	for _, line := range append(summaryLines(summary, ui.Width(os.Stderr)), suggestLines(summary, r.installWords())...) {
		if colours {
			line = colourFirstWord(line)
		}
		r.stderr.Line(line)
	}
	if exit != nil && exit.Code == 0 {
		if hint := keepHint(r.argv, r.request, summary.Installed); hint != "" {
			r.stderr.Say("hint: %s", hint)
		}
	}
	if exit != nil && exit.Code != 0 {
		hints := mountHints(r.argv, r.request.Workdir, r.seen(), anotherReason(summary))
		if exit.Code == exitNotFound {
			hints = append(r.templateHints(ctx), hints...)
		}
		hints = append(hints, r.shellHints(summary)...)
		for _, hint := range hints {
			r.stderr.Say("hint: %s", hint)
		}
		if hint := lockHint(summary.Refused, r.request); hint != "" {
			r.stderr.Say("hint: %s", hint)
		}
	}
}

// seen are the host's directories that the run sees, or a copy of.
func (r *runner) seen() []api.Mount {
	if r.workspace == nil {
		return r.request.Mounts
	}
	return append(slices.Clone(r.request.Mounts), api.Mount{Source: r.workspace.Original(), Destination: workspaceInside})
}

// ending is the summary as it was when the command's end was judged, if that was done.
func (r *runner) ending(ctx context.Context) (api.RunSummary, error) {
	if r.summed != nil {
		return *r.summed, nil
	}
	return r.summary(ctx)
}

func (r *runner) summary(ctx context.Context) (api.RunSummary, error) {
	return askAgain(ctx, r.client, func(c *client.Client) (api.RunSummary, error) {
		return c.RunSummary(ctx, r.box.Run)
	})
}

// summaryLines is the table, printable, for a terminal of that width (0: for none);
// empty if nothing happened.
func summaryLines(s api.RunSummary, width int) []string {
	served := notInstalled(s.Served, s.Installed)
	parts := []string{}
	for _, part := range []struct {
		n    int
		what string
	}{
		{len(untold(s)), "alarms"},
		{len(s.Installed), "installed"},
		{len(served), "served but not installed"},
		{len(s.Withheld), "withheld"},
		{len(s.Refused), "refused"},
		{len(s.Missing), "missing upstream"},
		{len(s.Failed), "failed upstream"},
		{len(s.Names), "unknown to the sandbox"},
		{len(s.Findings), "found in what went out"},
		{countHosts(s.Hosts, reached), hostsWord(countHosts(s.Hosts, reached)) + " reached"},
		{countHosts(s.Hosts, refusedHost), hostsWord(countHosts(s.Hosts, refusedHost)) + " refused"},
		{toolCalls(s.Tools, called), "calls of tools"},
		{toolCalls(s.Tools, uncalled), "calls of tools refused"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	lines := observedLines(s, width)
	if len(parts) > 0 {
		lines = append(lines, fmt.Sprintf("cofferdam: run %s: %s", ui.Printable(s.Run), strings.Join(parts, ", ")))
		lines = append(lines, summaryTable(s, served, width)...)
	}
	if s.Unlisted != "" {
		lines = append(lines, fmt.Sprintf("cofferdam: run %s: what it installed is not known: %s", ui.Printable(s.Run), ui.Printable(s.Unlisted)))
	}
	return lines
}

// suggestLines say how to get to a policy that allows what was refused, or to the lines that allow it; words
// are what follows the run's id, by which the run's own install is tried.
func suggestLines(s api.RunSummary, words []string) []string {
	refused := slices.Concat(s.Refused, s.Would)
	switch {
	case helpedByEntries(s):
		return []string{"cofferdam: a policy that allows what was refused: cofferdam policy suggest --run " + ui.Printable(ui.ShellLine(append([]string{s.Run}, words...)))}
	case slices.ContainsFunc(refused, func(p api.Package) bool { return p.Suggest != "" }):
		return []string{"cofferdam: lines of a policy that allow what was refused: cofferdam why --run " + ui.Printable(ui.Quoted(s.Run))}
	}
	return nil
}

// helpedByEntries tells whether entries of the allowlist would admit some of what was refused.
func helpedByEntries(s api.RunSummary) bool {
	return slices.ContainsFunc(slices.Concat(s.Refused, s.Would), func(p api.Package) bool { return policy.AreEntries(p.Suggest) })
}

// installWords returns the mounts and the command of a run that installs what a project names, as policy suggest
// takes them; none: it can't be planned, or installs by name alone.
func (r *runner) installWords() []string {
	request := r.request
	if len(request.Mounts) == 0 {
		return nil
	}
	if _, _, err := installsIn(r.argv, request); err != nil || !isShownAsIs(r.argv) {
		return nil
	}
	var words []string
	for _, spec := range r.flags.mounts {
		words = append(words, "--mount", strings.TrimSuffix(spec, ":rw"))
	}
	if r.flags.workspace == workspaceCopy {
		words = append(words, "--mount", ".:"+request.Workdir)
	}
	if len(words) == 0 {
		return nil
	}
	if r.flags.workdir != "" {
		words = append(words, "--workdir", r.flags.workdir)
	}
	return append(append(words, "--"), r.argv...)
}

// shortRange keeps a range of long versions from widening the whole table; the
// record has it whole.
func shortRange(version string) string {
	const most = 24
	from, to, isRange := strings.Cut(version, " .. ")
	if !isRange {
		return version
	}
	return text.Shorten(from, most) + " .. " + text.Shorten(to, most)
}

func summaryTable(s api.RunSummary, served []api.Package, width int) []string {
	var rows [][]string
	row := func(what, name, version, why string) {
		rows = append(rows, []string{"  " + what, ui.Printable(name), shortRange(ui.Printable(version)), ui.Printable(why)})
	}
	more := func(what string, n int) {
		if n > reportRows {
			row(what, fmt.Sprintf("and %d more: cofferdam audit list --run %s", n-reportRows, s.Run), "", "")
		}
	}
	for _, part := range []struct {
		what     string
		packages []api.Package
	}{{"ALARM", untold(s)}, {"installed", s.Installed}, {"served", served}, {"withheld", s.Withheld}, {"refused", s.Refused}, {"missing", s.Missing}, {"failed", s.Failed}} {
		for _, p := range part.packages[:min(len(part.packages), reportRows)] {
			what := part.what
			if p.Alarm && what != "ALARM" {
				what = "ALARM " + what
			}
			row(what, subject(p), p.Version, reasonAndRule(p))
		}
		more(part.what, len(part.packages))
	}
	for _, n := range s.Names[:min(len(s.Names), reportRows)] {
		row("no such name", n.Name, timesText(n.Count), n.Reason)
	}
	more("no such name", len(s.Names))
	for _, f := range s.Findings[:min(len(s.Findings), reportRows)] {
		row("found", f.What, timesText(f.Count), fmt.Sprintf("in %s: %s", f.Where, f.Action))
	}
	more("found", len(s.Findings))
	for _, h := range s.Hosts[:min(len(s.Hosts), reportRows)] {
		where := fmt.Sprintf("%s:%d", h.Name, h.Port)
		if reached(h) {
			row("reached", where, connections(h.Connections), transferred(h.BytesOut)+" out, "+transferred(h.BytesIn)+" in")
		}
		if refusedHost(h) {
			row("refused", where, refusalsText(h.Refused), h.Reason)
		}
	}
	more("reached", len(s.Hosts))
	toolRows(s.Tools[:min(len(s.Tools), reportRows)], row)
	more("called", len(s.Tools))
	return ui.Columns(rows, width)
}

// untold are the alarms that no line about a package tells of.
func untold(s api.RunSummary) []api.Package {
	lines := slices.Concat(s.Installed, s.Withheld, s.Refused, s.Failed, s.Missing)
	return slices.DeleteFunc(slices.Clone(s.Alarms), func(a api.Package) bool {
		return a.Ecosystem != "" && slices.ContainsFunc(lines, func(p api.Package) bool {
			return p.Alarm && p.Ecosystem == a.Ecosystem && p.Name == a.Name && (p.Version == a.Version || a.Version == "" || p.Version == "")
		})
	})
}

func reached(h api.Host) bool     { return h.Connections > 0 }
func refusedHost(h api.Host) bool { return h.Refused > 0 }

func countHosts(hosts []api.Host, is func(api.Host) bool) (n int) {
	for _, h := range hosts {
		if is(h) {
			n++
		}
	}
	return n
}

func hostsWord(n int) string {
	if n == 1 {
		return "host"
	}
	return "hosts"
}

// refusalsText says how often a host was refused: a connection to it, or a request.
func refusalsText(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func connections(n int) string {
	if n == 1 {
		return "1 connection"
	}
	return fmt.Sprintf("%d connections", n)
}

// subject is what a line is about: a package, or an address without one.
func subject(p api.Package) string {
	if p.Name == "" {
		return strings.TrimPrefix(p.File, "https://")
	}
	return strings.TrimSpace(p.Ecosystem + " " + p.Name)
}

// reasonAndRule is the reason and, in brackets, the rule to look for in the policy.
func reasonAndRule(p api.Package) string {
	parts := []string{}
	if p.Reason != "" {
		parts = append(parts, p.Reason)
	}
	if p.Rule != "" {
		parts = append(parts, "["+p.Rule+"]")
	}
	if t := timesText(p.Count); t != "" {
		parts = append(parts, t)
	}
	return strings.Join(parts, " ")
}

// notInstalled leaves out of served what was found installed.
func notInstalled(served, installed []api.Package) []api.Package {
	type release struct{ ecosystem, name, version string }
	found := map[release]bool{}
	for _, p := range installed {
		found[release{p.Ecosystem, p.Name, p.Version}] = true
	}
	rest := []api.Package{}
	for _, p := range served {
		if !found[release{p.Ecosystem, p.Name, p.Version}] {
			rest = append(rest, p)
		}
	}
	return rest
}

// outcome is the line of --json.
type outcome struct {
	Run      string          `json:"run,omitempty"`
	Sandbox  string          `json:"sandbox,omitempty"`
	Command  []string        `json:"command"`
	Exit     *api.Exit       `json:"exit,omitempty"` // nil: it did not run, or its end is not known
	ExitCode int             `json:"exit_code"`      // this process's
	Error    string          `json:"error,omitempty"`
	Detached bool            `json:"detached,omitempty"` // it goes on, and waits for Holds
	Holds    []api.Hold      `json:"holds,omitempty"`
	Summary  *api.RunSummary `json:"summary,omitempty"`
	Changes  *changeList     `json:"changes,omitempty"` // of a run with a copy of a directory
}

// tellJSON writes the outcome as the last line of stderr, whatever happened,
// and returns an error with nothing left to say.
func (r *runner) tellJSON(ctx context.Context, exit *api.Exit, err error) error {
	o := outcome{Run: r.box.Run, Sandbox: r.box.ID, Command: r.argv, Exit: exit, Changes: r.changes}
	if err != nil {
		o.ExitCode, o.Error = exitCode(err), err.Error()
	}
	if o.ExitCode == exitDetached {
		o.Detached, o.Holds = true, r.holds.waiting()
	}
	if r.box.Run != "" {
		ctx, cancel := withQuickTimeout(context.WithoutCancel(ctx))
		defer cancel()
		summary, failure := r.summary(ctx)
		if failure == nil {
			o.Summary = &summary
		} else if o.Error == "" {
			o.Error = failure.Error()
		}
	}
	line, failure := ui.JSONLine(o)
	if failure != nil {
		return errors.Join(err, failure)
	}
	r.stderr.Line(line)
	if err == nil {
		return nil
	}
	return &exitError{code: o.ExitCode}
}

// colourFirstWord gives the word that a line of a run's table begins with its colour: what came in
// is green, what did not is yellow or red.
func colourFirstWord(line string) string {
	word := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(word)]
	for _, of := range []struct{ word, colour string }{
		{"ALARM", "\x1b[1;31m"}, {"installed", "\x1b[32m"}, {"reached", "\x1b[32m"}, {"refused", "\x1b[31m"}, {"withheld", "\x1b[33m"}, {"failed", "\x1b[33m"}, {"would refuse", "\x1b[33m"}, {"no such name", "\x1b[33m"},
	} {
		if indent != "" && strings.HasPrefix(word, of.word) {
			return indent + of.colour + of.word + "\x1b[0m" + word[len(of.word):]
		}
	}
	return line
}

// transferred is how much a connection carried, which may be nothing.
func transferred(n int64) string {
	if n == 0 {
		return "0 B"
	}
	return ui.Size(n)
}
