package unended_test

import (
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/unended"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestAFetchOfToolsHasAnEnd: a template's tools are fetched in a run whose sandbox the door alone knows
// of: no journal, keeper or engine has it. When the daemon has died meanwhile nobody but the registry can
// tell its end. A command is the control.
func TestAFetchOfToolsHasAnEnd(t *testing.T) {
	p, err := policy.Parse("p.yaml", []byte("version: \"1\"\n"))
	must(t, err)
	log := &approvaltest.Log{}
	c := admission.New(admission.Config{Log: log})
	must(t, c.Register(admission.Run{Sandbox: "build-1", Run: "template-debian", User: "daemon", Template: "debian", Policy: p}))
	must(t, c.SandboxStarted(t.Context(), "build-1"))
	_, err = c.CommandAs(t.Context(), "build-1", "cmd-1", admission.Asked{Argv: []string{"true"}})
	must(t, err)

	// The daemon dies here.
	g, err := unended.Open(t.Context(), log, filepath.Join(t.TempDir(), "unended.json"))
	must(t, err)
	must(t, g.EndAll(t.Context(), "the daemon ended", func(unended.Begin) bool { return true }))

	ends := map[audit.Kind]int{}
	for _, r := range log.All() {
		if r.Outcome == audit.Finished {
			ends[r.Kind]++
		}
	}
	if ends[audit.KindCommand] != 1 {
		t.Fatalf("the control has %d ends", ends[audit.KindCommand])
	}
	if ends[audit.KindSandbox] != 1 {
		t.Errorf("what fetches a template's tools has %d ends on record", ends[audit.KindSandbox])
	}
}
