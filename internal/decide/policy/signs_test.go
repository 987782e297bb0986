package policy_test

import "testing"

// TestSignsOfOtherLetters: a path is refused with a character that some servers take for a sign by which a path ends, goes on
// in another form, or is escaped. Those of full width are, and small ones, and what NFC makes one of already. The controls: the signs
// themselves, escaped, match or don't as they did, and other letters pass.
func TestSignsOfOtherLetters(t *testing.T) {
	p := mustParse(t, "network_allowlist:\n  - { host: api.t.example, methods: [GET], paths: [\"/repos/*/public\"] }\n")
	for path, refused := range map[string]bool{
		"/repos/a%EF%BC%9F/public": true, "/repos/a%EF%B9%96/public": true, "/repos/a%E2%81%87/public": true, "/repos/a%E2%81%88/public": true, // ?
		"/repos/a%EF%BC%83/public": true, "/repos/a%EF%B9%9F/public": true, // #
		"/repos/a%EF%BC%9Bx/public": true, "/repos/a%EF%B9%94x/public": true, "/repos/a%CD%BEx/public": true, // ;
		"/repos/..%EF%BC%85%32%66x/public": true, "/repos/a%EF%BC%852fb/public": true, "/repos/a%EF%B9%AA/public": true, "/repos/a%D9%AA2fb/public": true, // %
		"/repos/a%3B%EF%BC%9Bx/public": true, "/repos/a%25EF%25BC%259F/public": true,
		"/repos/a%3F/public": true, "/repos/a%23/public": true, "/repos/a%25/public": true, // as before
		"/repos/a/public": false, "/repos/a%3Bx/public": false, "/repos/caf%C3%A9/public": false, "/repos/%D8%9F/public": false, "/repos/%EF%BC%A1/public": false,
	} {
		if d, _ := p.Requests().Judge("api.t.example", 443, request("GET", path)); d.Allowed() == refused {
			t.Errorf("%s: %+v", path, d)
		}
	}
}
