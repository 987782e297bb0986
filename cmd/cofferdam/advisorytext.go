package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// writeImport tells what came of an import, alarms last: they are what somebody
// must act on.
func writeImport(w io.Writer, done api.AdvisoryImport) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", ui.Printable(done.Source.Label), describeSource(done.Source))
	if done.Replaced != nil {
		fmt.Fprintf(&b, "before: %s, of %s\n", describeSource(*done.Replaced), ui.Moment(done.Replaced.Imported))
	}
	if ignored := ignoredText(done); ignored != "" {
		fmt.Fprintf(&b, "ignored: %s\n", ignored)
	}
	if done.Widened > 0 {
		fmt.Fprintf(&b, "versions that can't be read, so every version counts: %d\n", done.Widened)
		for _, of := range done.WidenedOf {
			fmt.Fprintf(&b, "  %s\n", ui.Printable(of))
		}
	}
	if done.Unreadable > 0 {
		fmt.Fprintf(&b, "left out, because they can't be read: %d\n", done.Unreadable)
		for _, p := range done.Problems {
			fmt.Fprintf(&b, "  %s: %s\n", ui.Printable(p.Where), ui.Printable(p.Reason))
		}
	}
	if done.Damage != "" {
		fmt.Fprintf(&b, "%s\n", ui.Printable(done.Damage))
	}
	if _, err := io.WriteString(w, b.String()); err != nil || len(done.Alarms) == 0 {
		return err
	}
	if _, err := fmt.Fprintf(w, "ALARM: %s known to be malicious:\n", ui.Plural(len(done.Alarms), "release was let in before it was", "releases were let in before they were")); err != nil {
		return err
	}
	return tableOf([]string{"RELEASE", "ADVISORY", "FIRST", "RUNS"}, func(a api.AdvisoryAlarm) []string {
		return []string{a.Ecosystem + " " + a.Name + " " + a.Version, a.Advisory, ui.Moment(a.First), strings.Join(a.Runs, " ")}
	})(w, done.Alarms)
}

// describeSource says in words what a source brings.
func describeSource(s api.AdvisorySource) string {
	total, parts := byEcosystem(s.Packages)
	if s.Kind == "popular" {
		return parts + " popular " + ui.Noun(total, "name", "names")
	}
	text := "no malware"
	if total > 0 {
		text = fmt.Sprintf("%s about %s (%s)", ui.Plural(s.Advisories, "advisory", "advisories"), ui.Plural(total, "package", "packages"), parts)
	}
	if s.Burnt > 0 {
		text += fmt.Sprintf(", %d malicious in every version", s.Burnt)
	}
	if total, parts := byEcosystem(s.Vulnerable); total > 0 {
		text += fmt.Sprintf("; %s of %s (%s)", ui.Plural(s.Vulnerabilities, "vulnerability", "vulnerabilities"), ui.Plural(total, "package", "packages"), parts)
	}
	return text
}

// byEcosystem is how many packages there are, and of each ecosystem in words.
func byEcosystem(packages map[string]int) (total int, words string) {
	var parts []string
	for _, e := range pkgref.Ecosystems() {
		if n := packages[string(e)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, e))
			total += n
		}
	}
	return total, strings.Join(parts, ", ")
}

func ignoredText(done api.AdvisoryImport) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{done.Withdrawn, "withdrawn"},
		{done.Other, "about no package"},
		{done.Elsewhere, "in other ecosystems"},
		{done.Unnamed, "with a name that no package can have"},
		{done.Repeated, "repeated"},
		{done.Beyond, "past the longest list"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

func writeSources(w io.Writer, status api.Advisories) error {
	return tableOf([]string{"LABEL", "KIND", "HOLDS", "IMPORTED", "FROM"}, func(s api.AdvisorySource) []string {
		return []string{s.Label, s.Kind, describeSource(s), ui.Moment(s.Imported), s.Path}
	})(w, slices.Concat(status.Sources, status.Shipped))
}

// speaksAgainst reports an advisory about the release, or without a version
// about any.
func speaksAgainst(facts api.PackageFacts) bool {
	return slices.ContainsFunc(facts.Malware, func(m api.KnownMalware) bool { return m.Affected || facts.Version == "" })
}

func writeFacts(w io.Writer, facts api.PackageFacts) error {
	var b strings.Builder
	fmt.Fprintln(&b, strings.TrimSpace(ui.Printable(facts.Ecosystem+" "+facts.Name+" "+facts.Version)))
	for _, m := range facts.Malware {
		fmt.Fprintf(&b, "  malware: %s\n", ui.Printable(malwareText(m, facts.Version)))
	}
	known := writeVulnerabilities(&b, facts.Vulnerabilities)
	switch {
	case facts.Popular:
		fmt.Fprintln(&b, "  popular")
	case facts.Lookalike != nil:
		fmt.Fprintf(&b, "  look-alike of %s: %s\n", ui.Printable(facts.Lookalike.Name), ui.Printable(facts.Lookalike.How))
	case len(facts.Malware)+known == 0:
		fmt.Fprintln(&b, "  nothing is known against it")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeVulnerabilities tells the known vulnerabilities of a release, and how old that knowledge
// is; nil: the daemon knows of no such thing. It returns how many there are.
func writeVulnerabilities(b *strings.Builder, v *api.Vulnerabilities) int {
	switch {
	case v == nil:
		return 0
	case !v.Checked:
		fmt.Fprintln(b, "  vulnerabilities: not checked (no database imported)")
	case len(v.Known) == 0:
		fmt.Fprintf(b, "  vulnerabilities: none known (imported %s)\n", ui.Moment(v.Imported))
	}
	for _, one := range v.Known {
		fix := "no fix known"
		if one.FixedIn != "" {
			fix = "fixed in " + one.FixedIn
		}
		text := fmt.Sprintf("%s (%s), %s", strings.Join(append([]string{one.ID}, one.Aliases...), " "), one.Severity, fix)
		fmt.Fprintf(b, "  vulnerability: %s\n", ui.Printable(text))
	}
	return len(v.Known)
}

// mostVersions are listed of an advisory.
const mostVersions = 20

func malwareText(m api.KnownMalware, version string) string {
	if m.Every {
		return m.ID + ", every version"
	}
	which := slices.Concat(m.Versions, m.Ranges)
	if more := len(which) - mostVersions; more > 0 {
		which = append(which[:mostVersions:mostVersions], fmt.Sprintf("and %d more", more))
	}
	text := m.ID + ", versions " + strings.Join(which, "; ")
	switch {
	case version == "":
	case m.Affected:
		text += "; this one is among them"
	default:
		text += "; this one is not among them"
	}
	return text
}
