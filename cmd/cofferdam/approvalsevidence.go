package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func showEvidence(s *ui.Sheet, r approval.Request, now time.Time) {
	e := r.Evidence
	s.OrUnknown("index", r.Upstream)
	if e.Published.IsZero() {
		s.Line("published", "%s", ui.Unknown)
	} else {
		s.Line("published", "%s, %s ago", e.Published.UTC().Format(time.DateOnly), ui.Age(now.Sub(e.Published)))
	}
	if !e.FirstSeen.IsZero() {
		s.Line("first seen", "%s, by this installation", e.FirstSeen.UTC().Format(time.DateOnly))
	}
	s.Text("popularity", cmp.Or(e.Popularity, "on no list of popular packages that is known here"))
	s.OrUnknown("maintainer", e.Maintainer)
	s.OrUnknown("summary", e.Summary)
	s.OrUnknown("homepage", e.Homepage)
	s.OrUnknown("license", e.License)
	if e.Versions > 0 {
		s.Line("versions", "%d", e.Versions)
	}
	evidenceList(s, e, "requires", "requires", e.Requires)
	showInside(s, e)
	showUpgrade(s, e)
	if e.LastApproved != "" {
		s.Line("last approved", "%s", e.LastApproved)
		evidenceList(s, e, "since then", "changes", e.Changes)
	}
}

// evidenceList prints a list of the evidence by its name there, and how much of it was cut.
func evidenceList(s *ui.Sheet, e evidence.Evidence, label, name string, values []string) {
	s.List(label, values)
	cut, is := e.Cut[name]
	if !is {
		return
	}
	if len(values) > 0 {
		label = ""
	}
	s.Line(label, "AND %d MORE of at least %d, which are not kept [sha256 of all: %s]", cut.Total-len(values), cut.Total, strings.Join(cut.Digests, " "))
}

// showVulnerabilities prints the known vulnerabilities of a release; nil: nobody looked, which
// stands in the list of what is not checked.
func showVulnerabilities(s *ui.Sheet, v *evidence.Vulnerabilities) {
	if v == nil {
		return
	}
	if v.Count() == 0 {
		s.Line("vulnerabilities", "none known (imported %s)", v.Imported.UTC().Format(time.DateOnly))
		return
	}
	var lines []string
	for _, one := range v.Known {
		lines = append(lines, one.String())
	}
	if v.More > 0 {
		lines = append(lines, fmt.Sprintf("AND %d MORE [sha256 of all: %s]", v.More, v.Digest))
	}
	s.List("VULNERABILITIES", lines)
	s.Line("", "as imported %s", v.Imported.UTC().Format(time.DateOnly))
}

// showInside tells what the file brings.
func showInside(s *ui.Sheet, e evidence.Evidence) {
	in := e.Inside
	if in == nil {
		s.Line("inside", "not checked: the file was not looked into yet")
		return
	}
	s.Line("inside", "%s", ui.Plural(in.Files, "file", "files"))
	evidenceList(s, e, "  modules", "inside.modules", in.Modules)
	evidenceList(s, e, "  entry points", "inside.entry_points", in.EntryPoints)
}

// showUpgrade tells what differs from the version that the run has.
func showUpgrade(s *ui.Sheet, e evidence.Evidence) {
	if e.Installed == "" {
		return
	}
	s.Line("in its place", "the run has %s of it already", e.Installed)
	switch {
	case e.FilesUnknown:
		s.Line("  new files", "%s", ui.Unknown)
	case e.Count("new_files") == 0:
		s.Line("  new files", "none")
	default:
		evidenceList(s, e, "  new files", "new_files", e.NewFiles)
	}
}

func showFiles(s *ui.Sheet, r approval.Request) {
	if len(r.Files) == 0 {
		s.Line("files", "none is known yet")
	}
	for i, f := range r.Files {
		name := ""
		if i == 0 {
			name = "files"
		}
		about := []string{f.Kind}
		if f.Size > 0 {
			about = append(about, ui.Size(f.Size))
		}
		if !f.Published.IsZero() {
			about = append(about, "of "+f.Published.UTC().Format(time.DateOnly))
		}
		if f.Scripts {
			about = append(about, "RUNS SOMETHING at installation")
		}
		if isBuilt(f) {
			about = append(about, "BUILDING IT RUNS ITS CODE")
		}
		s.Line(name, "%s (%s)", f.Name, strings.Join(about, ", "))
		for _, d := range f.Digests {
			s.Line("", "  %s", d)
		}
		if len(f.Digests) == 0 {
			s.Line("", "  no digest is known yet")
		}
	}
}

// describeExpiry says when an answer ends that lasts for some time.
func describeExpiry(lasts time.Duration) string {
	if lasts <= 0 {
		return ""
	}
	return fmt.Sprintf(" until %s", time.Now().Add(lasts).Format(time.DateTime))
}

// maxNamed bounds the runs that one sentence names; those that show lists are more.
const maxNamed = 8

// describeScope says for whom an answer would be, or is: exactly, and with whose runs they are.
func describeScope(r approval.Request, scope approval.Scope) string {
	switch scope {
	case approval.ScopeRun, approval.ScopeOnce:
		runs := namesOfRuns(r)
		if r.Asked == 1 {
			return "the run that asked" + runs
		}
		return fmt.Sprintf("the %d runs that asked%s", r.Asked, runs)
	case approval.ScopePolicy:
		return "every run, whoever it belongs to, under " + policiesOf(r)
	case approval.ScopeEverywhere:
	}
	return "every run of this installation, whoever it belongs to"
}

// namesOfRuns is " (r1 of ann, r2 of ann)".
func namesOfRuns(r approval.Request) string {
	var names []string
	for _, a := range r.Asks[:min(len(r.Asks), maxNamed)] {
		names = append(names, a.Name())
	}
	if len(names) == 0 {
		return ""
	}
	if more := r.Asked - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// policiesOf are the policies of the runs that asked, by their digests.
func policiesOf(r approval.Request) string {
	var policies []string
	for _, a := range r.Asks {
		name := cmp.Or(a.PolicyName, "the built-in policy") + " (" + a.Policy + ")"
		if !slices.Contains(policies, name) {
			policies = append(policies, name)
		}
	}
	if r.Asked > len(r.Asks) {
		policies = append(policies, fmt.Sprintf("that of one of the %d other runs that asked", r.Asked-len(r.Asks)))
	}
	return "the same policy, byte for byte: " + strings.Join(policies, ", or ")
}
