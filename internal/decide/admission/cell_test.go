package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// TestCells: a cell is judged by its text and by what is found in it, is on record before it
// runs, and claims what it installs.
func TestCells(t *testing.T) {
	h := newHouse(t, Limits{})
	run := h.run()
	run.Sandbox = "sb2"
	run.Policy = parse(t, strings.Replace(document, "rules:\n", "rules:\n  - { name: no-processes, condition: { field: findings, operator: matches, value: \"\\\\bprocess:(os|subprocess)\" }, action: deny, priority: 9, message: stay inside }\n", 1))
	must(t, h.Register(run))
	for _, c := range []struct {
		language, code, rule string
		ok                   bool
	}{
		{"python", "1 + 1", "defaults.action", true},
		{"python", "eval('1')", "rules.no-eval", false},
		{"python", "import os as o\no.system('ls')", "rules.no-processes", false},
		{"python", "# import subprocess", "defaults.action", true},
		{"bash", "import subprocess", "defaults.action", true}, // what is found in Python is in no other language
		{"python", "!pip install requests==2.31.0\n%pip install 'numpy'", "defaults.action", true},
		{"python", strings.Repeat("x", 1<<20), "defaults.action", true},
	} {
		a, err := h.Cell(t.Context(), "sb2", "cell-"+c.code[:1], c.language, c.code)
		must(t, err)
		if a.Decision.Allowed() != c.ok || a.Decision.Rule != c.rule || a.RequestID == "" {
			t.Errorf("%.60q: %+v", c.code, a)
		}
	}
	must(t, h.CommandFinished(t.Context(), "sb2", "cell-1", channel.Exit{Code: 1, Error: "ValueError: bad", Claimed: true}))
	blocked := h.records(t, audit.Blocked)
	if len(blocked) != 2 || blocked[1].Reason != "rule no-processes denies it: stay inside" || !slices.Equal(blocked[0].Command, []string{"python", "eval('1')"}) || len(blocked[0].Detail["code_sha256"]) != 64 {
		t.Errorf("%+v", blocked)
	}
	if got := h.records(t, audit.Finished); len(got) != 1 || !slices.Equal(got[0].Command, []string{"python", "1 + 1"}) || got[0].Detail["error"] != "ValueError: bad" {
		t.Errorf("%+v", got)
	}
	sb, err := h.tenants.getTenant("sb2")
	must(t, err)
	if got := sb.claims[pkgref.Ref{Ecosystem: pkgref.Python, Name: "requests"}]; got != "==2.31.0" {
		t.Errorf("the cell claims %q of %v", got, sb.claims)
	}
}
