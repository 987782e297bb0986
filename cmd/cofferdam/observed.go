package main

import (
	"fmt"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/ui"
)

// observedLines say, before all else, that a run's policy only observed, and what it would
// have refused; none if it did not.
func observedLines(s api.RunSummary, width int) []string {
	if !s.Observes && len(s.Would)+len(s.WouldNames) == 0 {
		return nil
	}
	said := []string{}
	for _, part := range []struct {
		n         int
		one, many string
	}{{len(s.Would), "package file", "package files"}, {len(s.WouldNames), "host", "hosts"}} {
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
		if len(s.Would)+len(s.WouldNames) == 1 {
			them = "it"
		}
		refused = strings.Join(said, " and ") + ", and let " + them + " through"
	}
	lines := []string{fmt.Sprintf("cofferdam: run %s: THE POLICY ONLY OBSERVES (mode: observe): it would have refused %s", ui.Printable(s.Run), refused)}
	var rows [][]string
	row := func(name, version, why string) {
		rows = append(rows, []string{"  would refuse", ui.Printable(name), shortRange(ui.Printable(version)), ui.Printable(why)})
	}
	for _, p := range s.Would[:min(len(s.Would), reportRows)] {
		row(subject(p), p.Version, why(p))
	}
	for _, n := range s.WouldNames[:min(len(s.WouldNames), reportRows)] {
		row(n.Name, times(n.Count), n.Reason)
	}
	if len(s.Would) > reportRows || len(s.WouldNames) > reportRows {
		row("and more: cofferdam why --run "+s.Run, "", "")
	}
	return append(lines, ui.Columns(rows, width)...)
}
