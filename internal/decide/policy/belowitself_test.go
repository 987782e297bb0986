package policy_test

import (
	"fmt"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestWhatIsBelowIsNotTheThingItself: most servers take a path with a slash at its end for the same place without
// it (Express, Spring before 6, Rails), some one with an empty parameter or a blank behind it. So a pattern that ends
// in stars does not have it where it does not have the place itself.
func TestWhatIsBelowIsNotTheThingItself(t *testing.T) {
	for glob, paths := range map[string]map[string]bool{
		"/repos/acme/**": {
			"/repos/acme": false, "/repos/acme/": false, "/repos/acme/;": false, "/repos/acme/;a=b": false, "/repos/acme/%20": false, "/repos/acme/%E2%80%8B": false, "/repos/acme/;/": false,
			"/repos/acme/%20/;a": false, "/repos/acme/+": false,
			"/repos/acme/app": true, "/repos/acme/app/": true, "/repos/acme/app/%20": true, "/repos/acme/+/refs": true, "/repos/acme/;a/app": true, // the controls
		},
		"/repos/*":      {"/repos/": false, "/repos/%20": false, "/repos/;a": false, "/repos/%E2%80%8B": false, "/repos/acme": true, "/repos/acme;a": true},
		"/repos/acme/":  {"/repos/acme/": true, "/repos/acme": false},
		"/**":           {"/": true, "/a": true, "/a/": true, "/%20": true},
		"/**/files":     {"/files": true, "/a/files": true, "/files/": false},
		"/v1/*/refs/**": {"/v1/+/refs/a": true, "/v1/a/refs/": false},
	} {
		p := mustParse(t, fmt.Sprintf("network_allowlist:\n  - { host: api.t.example, methods: [DELETE], paths: [%q] }\n", glob))
		for path, allowed := range paths {
			if d, _ := p.Requests().Judge("api.t.example", 443, policy.Request{Method: "DELETE", Path: path}); d.Allowed() != allowed {
				t.Errorf("DELETE %s by %s: %s (%s)", path, glob, d.Effect, d.Reason)
			}
		}
	}
}
