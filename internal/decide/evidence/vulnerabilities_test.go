package evidence_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
)

// TestWorst: what another version, or a hand, wrote may count vulnerabilities and name none.
func TestWorst(t *testing.T) {
	for what, v := range map[string]*evidence.Vulnerabilities{"nothing": nil, "none": {}, "more alone": {More: 3}} {
		if worst, ok := v.Worst(); ok {
			t.Errorf("%s: %s", what, worst)
		}
	}
	v := &evidence.Vulnerabilities{Known: []evidence.Vulnerability{{ID: "CVE-1", Severity: "high"}, {ID: "CVE-2"}}}
	if worst, ok := v.Worst(); !ok || worst.ID != "CVE-1" {
		t.Errorf("%s, %v", worst, ok)
	}
}
