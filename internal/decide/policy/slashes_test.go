package policy_test

import (
	"testing"
)

// TestSlashesOfOtherLetters: where paths count, a path is refused with a character that some servers
// take for a slash or a backslash. Those of full width are; so are the ones that Windows makes
// slashes of when a program asks for its ANSI letters ("best fit": bestfit1252.txt has 2044, 2215
// and 2216, code page 932 the yen sign, 949 the won sign). The controls: full width is refused,
// and other letters pass.
func TestSlashesOfOtherLetters(t *testing.T) {
	p := mustParse(t, "network_allowlist:\n  - { host: api.t.example, methods: [GET], paths: [\"/public/**\"] }\n")
	for _, c := range []struct {
		path    string
		refused bool
	}{
		{"/public/..%EF%BC%8Fprivate", true},
		{"/public/..%EF%BC%BCprivate", true},
		{"/public/caf%C3%A9", false},
		{"/public/..%E2%81%84private", true}, // fraction slash
		{"/public/..%E2%88%95private", true}, // division slash
		{"/public/..%E2%88%96private", true}, // set minus: a backslash
		{"/public/..%C2%A5private", true},    // yen sign
		{"/public/..%E2%82%A9private", true}, // won sign
	} {
		if d, _ := p.Requests().Judge("api.t.example", 443, request("GET", c.path)); d.Allowed() == c.refused {
			t.Errorf("%s: %+v", c.path, d)
		}
	}
}
