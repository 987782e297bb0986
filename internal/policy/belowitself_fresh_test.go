package policy_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// TestWhatIsBelowIsNotTheThingItself: docs/network.md says of /repos/acme/** that it "has all below /repos/acme, not
// itself". Most servers take a path with a slash at its end for the same place without it (Express, Spring before 6,
// Rails), or with an empty parameter or a blank behind it.
func TestWhatIsBelowIsNotTheThingItself(t *testing.T) {
	p := mustParse(t, "network_allowlist:\n  - { host: api.t.example, methods: [DELETE], paths: [\"/repos/acme/**\"] }\n")
	for path, allowed := range map[string]bool{
		"/repos/acme":           false, // the control
		"/repos/acme/app":       true,  // the control
		"/repos/acme/":          false,
		"/repos/acme/;":         false,
		"/repos/acme/;a=b":      false,
		"/repos/acme/%20":       false,
		"/repos/acme/%E2%80%8B": false,
	} {
		if d, _ := p.Requests().Judge("api.t.example", 443, policy.Request{Method: "DELETE", Path: path}); d.Allowed() != allowed {
			t.Errorf("DELETE %s: %s (%s)", path, d.Effect, d.Reason)
		}
	}
}
