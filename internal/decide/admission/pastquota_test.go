package admission

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// usesItsRecordsUp has a run be cut, as a guest can at will: it asks for what is refused until it has made
// more records than a run may.
func usesItsRecordsUp(t *testing.T, h *house, most int) {
	t.Helper()
	for i := range most {
		_, err := h.Failed(t.Context(), door.Failure{Sandbox: "sb1", Reason: fmt.Sprint("bad ", i)})
		must(t, err)
	}
	if _, err := h.Failed(t.Context(), door.Failure{Sandbox: "sb1", Reason: "one more"}); !errors.Is(err, fault.ErrForbidden) {
		t.Fatalf("INCONCLUSIVE: the run is not cut: %v", err)
	}
}

// TestARunThatIsCutKeepsNoAlarmFromTheRecord: what lies on a disk that nobody served is an alarm, whether or
// not the guest has used its records up before somebody looks. The control has not.
func TestARunThatIsCutKeepsNoAlarmFromTheRecord(t *testing.T) {
	const most = 5
	planted := provenance.Disk{Found: listing(on("python evil 1.0.0", "/x/evil"))}
	for what, cut := range map[string]bool{"control": false, "cut": true} {
		t.Run(what, func(t *testing.T) {
			h := newHouse(t, Limits{Records: most})
			if cut {
				usesItsRecordsUp(t, h, most)
			}
			_, err := h.Installed(t.Context(), "sb1", planted)
			if n := len(h.records(t, audit.Alarm)); n != 1 {
				t.Errorf("a package that was never served is on the disk, and %d alarms are on record (%v)", n, err)
			}
			if n := len(h.records(t, audit.Installed)); n != 1 {
				t.Errorf("it has %d installed records", n)
			}
		})
	}
}

// TestARunThatIsCutHidesNoDisk: a sandbox that does not list its packages is an alarm.
func TestARunThatIsCutHidesNoDisk(t *testing.T) {
	const most = 5
	for what, cut := range map[string]bool{"control": false, "cut": true} {
		t.Run(what, func(t *testing.T) {
			h := newHouse(t, Limits{Records: most})
			if cut {
				usesItsRecordsUp(t, h, most)
			}
			_, err := h.InventoryUnknown(t.Context(), "sb1", "it stalls", true)
			if n := len(h.records(t, audit.Alarm)); n != 1 {
				t.Errorf("the sandbox hides its disk, and %d alarms are on record (%v)", n, err)
			}
		})
	}
}

// TestWhatWasServedAndBrokenOffIsOnRecordOfARunThatIsCut: the log says of a file that it was served, and a
// guest that gives it up and uses its records up has it stay so.
func TestWhatWasServedAndBrokenOffIsOnRecordOfARunThatIsCut(t *testing.T) {
	const most = 6
	for what, cut := range map[string]bool{"control": false, "cut": true} {
		t.Run(what, func(t *testing.T) {
			h := newHouse(t, Limits{Records: most})
			h.Unregister("sb1")
			h.policy = parse(t, "packages: { default: allow }")
			must(t, h.Register(h.run()))
			a, err := h.Serve(t.Context(), serving("requests", "2.31.0"))
			must(t, err)
			if !a.Decision.Allowed() {
				t.Fatalf("INCONCLUSIVE: it is not served: %+v", a)
			}
			if cut {
				usesItsRecordsUp(t, h, most-1)
			}
			err = h.Aborted(t.Context(), "sb1", a.Seq, 7)
			_ = h.SandboxEnded(t.Context(), "sb1", "cut")
			if n := len(h.records(t, audit.Aborted)); n != 1 {
				t.Errorf("seven bytes of the file left, and %d records say that it broke off (%v)", n, err)
			}
		})
	}
}

// TestAPlaceholderThatLeavesIsOnRecordOfARunThatIsCut: that a request has a secret's placeholder where the secret does not go
// is an alarm, also past the guest's records.
func TestAPlaceholderThatLeavesIsOnRecordOfARunThatIsCut(t *testing.T) {
	const most = 5
	for what, cut := range map[string]bool{"control": false, "cut": true} {
		t.Run(what, func(t *testing.T) {
			h := newHouse(t, Limits{Records: most})
			if cut {
				usesItsRecordsUp(t, h, most)
			}
			host := door.HostPort{Sandbox: "sb1", Name: "api.example", Port: 443}
			_, err := h.Leaked(t.Context(), door.LeakAsk{HostPort: host, Request: exchange.Request{Method: "GET", Path: "/"}, Leak: exchange.Leak{Secret: "s", Where: "the path"}})
			alarms := 0
			for _, r := range h.records(t) {
				if r.IsAlarm() {
					alarms++
				}
			}
			if alarms != 1 {
				t.Errorf("%d alarms are on record (%v)", alarms, err)
			}
		})
	}
}
