package template

import (
	"regexp"
	"strconv"
	"strings"
)

// meter turns an installer's output into progress. A build has phases of known
// weight, and within a phase packages are counted.
type meter struct {
	report     func(Progress)
	phase      phase
	expect     int // packages of the running apt, from "N newly installed"
	seen       int // events of this phase so far
	last       int
	said       Progress
	complaints []string // the most telling lines, first first; at most 20
}

// phase is a stretch of a build: its share of the whole in percent, and how
// many events a package causes in it.
type phase struct {
	step       string
	from, to   int
	perPackage int
}

// newlyInstalled matches apt's summary.
var newlyInstalled = regexp.MustCompile(`(\d+) newly installed`)

func newMeter(report func(Progress)) *meter {
	return &meter{report: report, phase: phase{step: "start", from: 3, to: 4}}
}

// phaseOf recognises the line that begins a phase.
func phaseOf(line string) (phase, bool) {
	for _, begin := range []struct {
		text string
		phase
	}{
		{"I: running apt-get update", phase{"package lists", 4, 8, 0}},
		{"I: downloading packages", phase{"download", 8, 20, 1}},
		{"I: extracting archives", phase{"extract", 20, 24, 0}},
		{"I: installing essential packages", phase{"install essentials", 24, 48, 2}},
		{"I: installing remaining packages", phase{"install tools", 48, 76, 3}},
		{"I: Retrieving ", phase{"download", 8, 30, 0}},
		{"I: Extracting ", phase{"extract", 30, 40, 0}},
		{"I: Unpacking ", phase{"install tools", 40, 60, 0}},
		{"I: Configuring ", phase{"install tools", 60, 76, 0}},
		{"cofferdam: packages", phase{"unpack the packages", 76, 77, 0}},
		{"cofferdam: user", phase{"user", 77, 78, 0}},
		{"cofferdam: waiting", phase{"wait for the tools", 78, 79, 0}},
		{"cofferdam: tools", phase{"unpack the tools", 79, 81, 0}},
		{"cofferdam: venv", phase{"venv", 81, 82, 0}},
		{"cofferdam: cleaning", phase{"clean", 82, 84, 0}},
		{"cofferdam: times", phase{"seal", 84, 90, 0}},
		{"cofferdam: image", phase{"image", 90, 96, 0}},
	} {
		if strings.HasPrefix(line, begin.text) {
			return begin.phase, true
		}
	}
	return phase{}, false
}

func (m *meter) takeLine(line string) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "E: ") || strings.Contains(line, "No space left") || strings.HasPrefix(line, "Err:") {
		if len(m.complaints) < 20 {
			m.complaints = append(m.complaints, strings.TrimPrefix(line, "E: "))
		}
	}
	if found := newlyInstalled.FindStringSubmatch(line); found != nil {
		m.expect, _ = strconv.Atoi(found[1]) // the expression admits digits only
		return
	}
	if next, ok := phaseOf(line); ok {
		if next.step != m.phase.step {
			m.seen = 0
		}
		m.phase = next
		m.reportDetail("")
		return
	}
	for _, event := range []string{"Get:", "Unpacking ", "Setting up "} {
		if rest, ok := strings.CutPrefix(line, event); ok {
			m.seen++
			name := ""
			if event != "Get:" {
				name, _, _ = strings.Cut(rest, " ")
			}
			m.reportDetail(name)
			return
		}
	}
}

// reportDetail reports, if there is something new to say; the percentage never falls.
func (m *meter) reportDetail(detail string) {
	percent := m.phase.from
	if all := m.expect * m.phase.perPackage; all > 0 {
		percent += min(m.seen, all) * (m.phase.to - m.phase.from) / all
	}
	percent = max(percent, m.last)
	m.last = percent
	if now := (Progress{Step: m.phase.step, Detail: detail, Percent: percent}); now != m.said {
		m.said = now
		m.report(now)
	}
}
