package admission

import (
	"errors"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// serving has a file served and gives its record's number.
func (h *house) serving(t *testing.T, version string) uint64 {
	t.Helper()
	a, err := h.Serve(t.Context(), serving("requests", version))
	must(t, err)
	return a.Seq
}

// TestWhatWasUnderWayIsAborted when the gateway, or the sandbox, ends: every
// `served` is either told to be sent, or followed by an `aborted`.
func TestWhatWasUnderWayIsAborted(t *testing.T) {
	for name, end := range map[string]func(*house) error{
		"the gateway": func(h *house) error { return h.GatewayEnded(t.Context()) },
		"the sandbox": func(h *house) error { return h.SandboxEnded(t.Context(), "sb1", "killed") },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, Limits{})
			whole, cut := h.serving(t, "2.31.0"), h.serving(t, "2.32.0")
			must(t, h.Sent(t.Context(), "sb1", whole))
			for range 2 {
				must(t, end(h))
			}
			got := h.records(t, audit.Aborted)
			if len(got) != 1 || got[0].Detail[records.DetailServed] != "1" || cut != 1 || got[0].Detail[detailSent] != "unknown" || got[0].InstalledVersion != "2.32.0" || got[0].Reason == "" {
				t.Errorf("aborted records: %+v", got)
			}
			for what, err := range map[string]error{
				"sent twice":         h.Sent(t.Context(), "sb1", whole),
				"sent after all":     h.Sent(t.Context(), "sb1", cut),
				"aborted after sent": h.Aborted(t.Context(), "sb1", whole, 3),
				"aborted twice":      h.Aborted(t.Context(), "sb1", cut, 3),
			} {
				if !errors.Is(err, fault.ErrNotFound) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// TestServedSaysWhichPart: an answer that has not all of the file says so on
// record.
func TestServedSaysWhichPart(t *testing.T) {
	h := newHouse(t, Limits{})
	ask := serving("requests", "2.31.0")
	ask.Part = "bytes 0-9/1000"
	_, err := h.Serve(t.Context(), ask)
	must(t, err)
	if got := h.records(t, audit.Served); len(got) != 1 || got[0].Detail[detailPart] != ask.Part {
		t.Errorf("records: %+v", got)
	}
}
