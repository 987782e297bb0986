package main

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// risk is a list of what speaks against a request, or of what it runs.
type risk struct {
	label, name string // name in evidence.Cut
	values      []string
}

// risksOf are what a person has to know of a release first: the worst at the head.
func risksOf(r approval.Request) []risk {
	e := r.Evidence
	all := []risk{{"ADVISORIES", "advisories", e.Advisories}}
	if e.Similar != "" {
		all = append(all, risk{"SIMILAR TO", "", []string{e.Similar}})
	}
	in := e.Inside
	if in != nil {
		all = append(all, risk{"READ FIRST", "inside.suspect", in.Suspect})
	}
	all = append(all, risk{"FINDINGS", "findings", e.Findings}, risk{"RUNS", "scripts", e.Scripts})
	if in != nil {
		all = append(all, risk{"BUILD RUNS", "inside.builds", in.Builds}, risk{"COMPILES", "inside.sources", in.Sources},
			risk{"EACH START", "inside.starts", in.Starts}, risk{"NATIVE CODE", "inside.native", in.Native})
	}
	return all
}

// showRisks prints them all, and what was looked for and not found.
func showRisks(s *ui.Sheet, r approval.Request) {
	for _, k := range risksOf(r) {
		evidenceList(s, r.Evidence, k.label, k.name, k.values)
		if k.name == "advisories" {
			showVulnerabilities(s, r.Evidence.Vulnerabilities)
		}
	}
	evidenceList(s, r.Evidence, "NOT CHECKED", "unchecked", r.Evidence.Unchecked)
	showAbsent(s, r)
}

// showAbsent tells which of the risks a file that was looked into does not have.
func showAbsent(s *ui.Sheet, r approval.Request) {
	e := r.Evidence
	built := slices.ContainsFunc(r.Files, isBuilt)
	if e.Inside == nil {
		if built {
			s.Line("BUILD RUNS", "%s", "its code, which was not looked into yet: it is a source distribution")
		}
		s.Line("NOT CHECKED", "%s", "what is inside: no file of it was looked into yet")
		return
	}
	if n := len(r.Files); n > 1 {
		s.Line("NOT CHECKED", "whether each of its %s was looked into: what is said here is of those that were", ui.Plural(n, "file", "files"))
	}
	var absent []string
	if !built && runsAtInstallation(r) == "" {
		absent = append(absent, "nothing that runs when it is installed")
	}
	if runs := built || runsAtInstallation(r) != ""; runs && e.Count("inside.suspect") == 0 && e.Inside.Read > 0 {
		absent = append(absent, "no line that plainly sends, starts or hides something in "+
			ui.Plural(e.Inside.Read, "text", "texts")+" looked at (what those load was not)")
	}
	if e.Count("inside.starts") == 0 && !built && slices.ContainsFunc(r.Files, isWheel) { // what a build makes is not known
		absent = append(absent, "nothing that runs at each start")
	}
	if e.Count("inside.native") == 0 {
		absent = append(absent, "no machine code")
	}
	if len(absent) > 0 {
		s.Line("not in it", "%s", strings.Join(absent, ", "))
	}
}

// isBuilt tells a file of which something is built, by code that it brings, when it is installed.
func isBuilt(f approval.File) bool { return f.Kind == string(policy.KindSdist) }

// isWheel tells a file in which there may be something that runs at each start.
func isWheel(f approval.File) bool {
	return f.Kind == string(policy.KindWheel) || f.Kind == string(policy.KindBuilt)
}

// maxWarnings is how many lines of a list a person is told before a question; show has all.
const maxWarnings = 10

// showWarnings prints what speaks against a request, the worst first, before a person is asked.
func showWarnings(s *ui.Sheet, r approval.Request) {
	for i, w := range risksOf(r) {
		if i == 1 && r.Evidence.Vulnerabilities.Count() > 0 { // behind the advisories
			showVulnerabilities(s, r.Evidence.Vulnerabilities)
		}
		total := max(r.Evidence.Count(w.name), len(w.values))
		if len(w.values) <= maxWarnings && total == len(w.values) {
			s.List(w.label, w.values)
			continue
		}
		first := w.values[:min(len(w.values), maxWarnings)]
		s.List(w.label, first)
		s.Line("", "AND %d MORE of at least %d [sha256 of those that are kept: %s]: cofferdam approvals show %s", total-len(first), total, text.DigestList(w.values), r.ID)
	}
}
