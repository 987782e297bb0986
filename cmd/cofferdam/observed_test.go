package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
)

// TestObservedComesFirst: a run's summary begins with what its policy did not do.
func TestObservedComesFirst(t *testing.T) {
	t.Parallel()
	many := api.RunSummary{
		Run: "r1", Observes: true, Installed: []api.Package{{Ecosystem: "python", Name: "flask", Version: "3"}},
		Would:      []api.Package{{Ecosystem: "python", Name: "flask", Version: "3", Rule: "packages.default", Reason: "no list has it\x1b[2J", Suggest: entryLines}},
		WouldNames: []api.Name{{Name: "a.example:443", Reason: "nor this"}, {Name: "b.example"}},
	}
	for name, c := range map[string]struct {
		s     api.RunSummary
		first string
		more  []string
	}{
		"nothing":     {api.RunSummary{Run: "r1", Observes: true}, "cofferdam: run r1: THE POLICY ONLY OBSERVES (mode: observe): it would have refused nothing", nil},
		"one":         {api.RunSummary{Run: "r1", Would: many.Would}, "cofferdam: run r1: THE POLICY ONLY OBSERVES (mode: observe): it would have refused 1 package file, and let it through", []string{"policy suggest --run r1"}},
		"all":         {many, "cofferdam: run r1: THE POLICY ONLY OBSERVES (mode: observe): it would have refused 1 package file and 2 hosts, and let them through", []string{`  no list has it\x1b[2J [packages.default]`, "a.example:443", "b.example", "run r1: 1 installed"}},
		"a finding":   {api.RunSummary{Run: "r1", Findings: []api.Finding{{What: "jwt", Where: "cmd-1", Action: "would_block", Count: 2}, {What: "jwt", Where: "cmd-2", Action: "report", Count: 1}}}, "cofferdam: run r1: THE POLICY ONLY OBSERVES (mode: observe): it would have refused 1 finding, and let it through", []string{"in cmd-1: it would block it", "in cmd-2: report"}},
		"each":        {api.RunSummary{Run: "r1", Would: many.Would, WouldNames: many.WouldNames, Findings: []api.Finding{{What: "jwt", Action: "would_redact"}}}, "cofferdam: run r1: THE POLICY ONLY OBSERVES (mode: observe): it would have refused 1 package file, 2 hosts and 1 finding, and let them through", nil},
		"the control": {api.RunSummary{Run: "r1", Installed: many.Installed}, "cofferdam: run r1: 1 installed", nil},
	} {
		lines := append(summaryLines(c.s, 0), suggestLines(c.s, nil)...)
		if len(lines) == 0 || lines[0] != c.first {
			t.Errorf("%s: %q", name, lines)
		}
		for _, text := range c.more {
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, text) }) {
				t.Errorf("%s: no %q in %q", name, text, lines)
			}
		}
	}
}

const entryLines = "allowed_packages:\n  python:\n    - name: flask\n"

// TestASummaryPromisesWhatSuggestDoes: the end of a run names policy suggest only where that adds something,
// with the run's own install where there is one.
func TestASummaryPromisesWhatSuggestDoes(t *testing.T) {
	t.Parallel()
	refused := func(lines string) api.RunSummary {
		return api.RunSummary{Run: "r1", Refused: []api.Package{{Name: "x", Suggest: lines}}}
	}
	for name, c := range map[string]struct {
		s     api.RunSummary
		words []string
		want  string
	}{
		"an entry":      {refused(entryLines), nil, "cofferdam: a policy that allows what was refused: cofferdam policy suggest --run r1"},
		"of a project":  {refused(entryLines), []string{"--mount", ".:/a b", "--", "npm", "install"}, "cofferdam: a policy that allows what was refused: cofferdam policy suggest --run r1 --mount '.:/a b' -- npm install"},
		"another key":   {refused("packages:\n  sdist: allow\n"), nil, "cofferdam: lines of a policy that allow what was refused: cofferdam why --run r1"},
		"nothing helps": {refused(""), nil, ""},
	} {
		if got := strings.Join(suggestLines(c.s, c.words), "\n"); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestAShellsInstallIsTriedByItsOwnWords: of a project's install in a shell the end of a run says how all of it is tried; of
// nothing else.
func TestAShellsInstallIsTriedByItsOwnWords(t *testing.T) {
	t.Parallel()
	helped := api.RunSummary{Run: "r1", Refused: []api.Package{{Name: "x", Suggest: entryLines}}}
	project := runFlags{mounts: []string{".:/work space:rw"}, workdir: "/w"}
	for name, c := range map[string]struct {
		argv  []string
		flags runFlags
		s     api.RunSummary
		want  string
	}{
		"a shell":         {[]string{"/bin/bash", "-c", "$x"}, project, helped, "cofferdam policy suggest --run r1 --mount '.:/work space' --workdir /w -- INSTALL"},
		"npm's":           {[]string{"bash", "-c", "cd sub &&\nnpm ci && npm test"}, project, helped, "--mount '.:/work space' --workdir /w/sub -- npm ci"},
		"pip's":           {[]string{"bash", "-c", "pip install -e . &&\npytest"}, project, helped, " --workdir /w -- pip install -e ."},
		"on one line":     {[]string{"bash", "-c", "cd sub && npm ci"}, project, helped, ""}, // the suggestion's own line has it
		"no project":      {[]string{"sh", "-c", "pip install x"}, runFlags{}, helped, ""},
		"the install":     {[]string{"pip", "install", "x"}, project, helped, ""},
		"nothing refused": {[]string{"sh", "-c", "exit 1"}, project, api.RunSummary{Run: "r1"}, ""},
		"only a shell":    {[]string{"bash"}, project, helped, ""},
	} {
		r := &runner{argv: c.argv, flags: c.flags, request: api.CreateSandbox{Workdir: "/w", Mounts: []api.Mount{{Destination: "/w"}}}}
		got := strings.Join(r.shellHints(c.s), "\n")
		if c.want == "" && got != "" || !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
