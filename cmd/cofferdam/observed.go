package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// observedLines say, before all else, that a run's policy only observed, and what it would
// have refused; none if it did not.
func observedLines(s api.RunSummary, width int) []string {
	found := wouldFind(s.Findings)
	if !s.Observes && len(s.Would)+len(s.WouldNames)+len(found) == 0 {
		return nil
	}
	said := []string{}
	for _, part := range []struct {
		n         int
		one, many string
	}{{len(s.Would), "package file", "package files"}, {len(s.WouldNames), "host", "hosts"}, {len(found), "finding", "findings"}} {
		switch {
		case part.n == 1:
			said = append(said, "1 "+part.one)
		case part.n > 1:
			said = append(said, fmt.Sprintf("%d %s", part.n, part.many))
		}
	}
	refused := "nothing"
	if len(said) > 0 {
		them := "them"
		if len(s.Would)+len(s.WouldNames)+len(found) == 1 {
			them = "it"
		}
		refused = enumerated(said) + ", and let " + them + " through"
	}
	lines := []string{fmt.Sprintf("cofferdam: run %s: THE POLICY ONLY OBSERVES (mode: observe): it would have refused %s", ui.Printable(s.Run), refused)}
	var rows [][]string
	row := func(name, version, why string) {
		rows = append(rows, []string{"  would refuse", ui.Printable(name), shortRange(ui.Printable(version)), ui.Printable(why)})
	}
	for _, p := range s.Would[:min(len(s.Would), reportRows)] {
		row(subject(p), p.Version, reasonAndRule(p))
	}
	for _, n := range s.WouldNames[:min(len(s.WouldNames), reportRows)] {
		row(n.Name, timesText(n.Count), n.Reason)
	}
	for _, f := range found[:min(len(found), reportRows)] {
		row(f.What, timesText(f.Count), "in "+f.Where+": it would "+strings.TrimPrefix(f.Action, wouldWord)+" it")
	}
	if max(len(s.Would), len(s.WouldNames), len(found)) > reportRows {
		row("and more: cofferdam why --run "+s.Run, "", "")
	}
	return append(lines, ui.Columns(rows, width)...)
}

// wouldWord is before what would have become of a finding.
const wouldWord = "would_"

// wouldFind are the findings that the policy would have redacted or blocked.
func wouldFind(all []api.Finding) []api.Finding {
	return slices.DeleteFunc(slices.Clone(all), func(f api.Finding) bool { return !strings.HasPrefix(f.Action, wouldWord) })
}

// enumerated is a list as it is read: "a, b and c".
func enumerated(all []string) string {
	last := len(all) - 1
	if last == 0 {
		return all[0]
	}
	return strings.Join(all[:last], ", ") + " and " + all[last]
}
