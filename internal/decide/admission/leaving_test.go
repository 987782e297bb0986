package admission

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestWhatARegistryWouldHear: no placeholder, whatever the policy; and no secret where the
// policy lets none out. A name that is asked for otherwise, and what is only reported, passes.
func TestWhatARegistryWouldHear(t *testing.T) {
	const token, fake = "glpat-" + "ab3de6gh9kab3de6gh9k", "sk-Fake-0123456789012345678901234567"
	for scanning, outcome := range map[string]audit.Outcome{"off": "", "report": audit.Found, "redact": audit.Blocked, "block": audit.Blocked} {
		h := newHouse(t, Limits{})
		run := h.run()
		run.Sandbox, run.Placeholders = "sb9", map[string]string{"one": fake}
		run.Policy = parse(t, "credentials: { secret_scanning: { requests: "+scanning+" } }\n")
		must(t, h.Register(run))
		for name, c := range map[string]struct {
			ask         door.OwnerAsk
			secret, one bool
		}{
			"another":         {door.OwnerAsk{Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "requests"}, Asked: "2.0.0"}, false, false},
			"name":            {door.OwnerAsk{Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: token}}, true, false},
			"version":         {door.OwnerAsk{Package: pkgref.Ref{Ecosystem: pkgref.Go, Name: "code.example/x"}, Version: token}, true, false},
			"what else":       {door.OwnerAsk{Package: pkgref.Ref{Ecosystem: pkgref.Go, Name: "code.example/x"}, Asked: token}, true, false},
			"the walker's":    {door.OwnerAsk{Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: token}, Walk: true}, false, false},
			"placeholder":     {door.OwnerAsk{Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: strings.ToLower(fake)}}, false, true},
			"in base64":       {door.OwnerAsk{Package: pkgref.Ref{Ecosystem: pkgref.Go, Name: "code.example/x"}, Asked: base64.StdEncoding.EncodeToString([]byte("x" + fake))}, false, true},
			"not a whole one": {door.OwnerAsk{Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: strings.ToLower(fake[:len(fake)-1])}}, false, false},
		} {
			before := len(findingsOf(t, h))
			c.ask.Sandbox = "sb9"
			_, err := h.Owner(t.Context(), c.ask)
			refused := c.one || c.secret && outcome == audit.Blocked
			if errors.Is(err, fault.ErrForbidden) != refused || !refused && err != nil {
				t.Errorf("%s, %s: %v", scanning, name, err)
			}
			if refused && (strings.Contains(err.Error(), token) || !strings.Contains(err.Error(), "; see: cofferdam why")) {
				t.Errorf("%s: %v", name, err)
			}
			found := findingsOf(t, h)[before:]
			if want := c.secret && outcome != "" && name != "what else" && name != "version"; len(found) > 1 || want && before == 0 && len(found) != 1 {
				t.Errorf("%s, %s: %+v", scanning, name, found)
			}
			for _, r := range found {
				if r.Outcome != outcome || r.Rule != door.RuleScanning || !strings.HasSuffix(r.Detail["where"], " registry package") {
					t.Errorf("%s, %s: %+v", scanning, name, r)
				}
			}
		}
		why, err := h.Refusals(t.Context(), "sb9", "", 0)
		must(t, err)
		alarms := 0
		for _, r := range why {
			if r.Alarm && r.Rule == door.RuleHostPlaceholder {
				alarms++
			}
		}
		if alarms != 2 {
			t.Errorf("%s: %d alarms: %+v", scanning, alarms, why)
		}
	}
}
