package admission

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// A sandbox of which only the log knows has its end on record, once.
func TestTheEndOfALostSandboxIsOnRecordOnce(t *testing.T) {
	h := newHouse(t, Limits{})
	must(t, h.SandboxLost(t.Context(), "sb1", "its keeper ended"))
	if n := len(h.records(t)); n != 0 {
		t.Fatalf("a sandbox that never began has %d records", n)
	}
	must(t, h.SandboxStarted(t.Context(), "sb1"))
	h.Unregister("sb1")
	for range 2 {
		must(t, h.SandboxLost(t.Context(), "sb1", "its keeper ended"))
	}
	got := h.records(t)
	if len(got) != 2 || got[1].Kind != audit.KindSandbox || got[1].Outcome != audit.Finished || got[1].Run != got[0].Run || got[1].Policy != got[0].Policy || got[1].Reason != "its keeper ended" {
		t.Errorf("records: %+v", got)
	}
}
