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

// TestACopiedCommandHasAnEnd: a command that goes on in a copy begins there with a record
// `restored`. When the daemon has died the next one tells its end, as that of a command that was
// started, which is the control.
func TestACopiedCommandHasAnEnd(t *testing.T) {
	p, err := policy.Parse("p.yaml", []byte("version: \"1\"\n"))
	must(t, err)
	log := &approvaltest.Log{}
	c := admission.New(admission.Config{Log: log})
	must(t, c.Register(admission.Run{Sandbox: "copy", Run: "r", Policy: p}))
	answer, err := c.CommandAs(t.Context(), "copy", "cmd-started", admission.Asked{Argv: []string{"sleep", "300"}})
	must(t, err)
	if !answer.Decision.Allowed() {
		t.Fatalf("the control was not started: %+v", answer)
	}
	must(t, c.CommandCopied(t.Context(), "copy", "cmd-copied", "source", []string{"sleep", "300"}))

	// The daemon dies here, and with it the keeper: nobody follows either.
	g, err := unended.Open(t.Context(), log, filepath.Join(t.TempDir(), "unended.json"))
	must(t, err)
	must(t, g.EndAll(t.Context(), "the daemon ended", func(unended.Begin) bool { return true }))

	ends := map[string]int{}
	for _, r := range log.All() {
		if r.Kind == audit.KindCommand && r.Outcome == audit.Finished {
			ends[r.Detail["command_id"]]++
		}
	}
	if ends["cmd-started"] != 1 {
		t.Fatalf("the control has %d ends", ends["cmd-started"])
	}
	if ends["cmd-copied"] != 1 {
		t.Errorf("a command that went on in a copy has %d ends on record", ends["cmd-copied"])
	}
}
