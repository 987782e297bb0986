package policy

import (
	"testing"
)

// TestAPathParameterIsNoEndOfASegment: servers written in Java take what stands behind a semicolon off
// each segment, so that a pattern which ends in something else is met by another place. What could be
// read in another way is refused where paths count.
func TestAPathParameterIsNoEndOfASegment(t *testing.T) {
	for glob, paths := range map[string]map[string]Effect{
		"/files/*.txt": {
			"/files/readme.txt":           Allow, // the control
			"/files/secrets.env":          Deny,
			"/files/secrets.env;.txt":     Deny, // Tomcat, Jetty, Spring: /files/secrets.env
			"/files/secrets.env;a=b.txt":  Deny,
			"/files/secrets.env%3B.txt":   Deny,
			"/files/secrets.env%3F.txt":   Deny, // who decodes before it parts the query off: /files/secrets.env
			"/files/secrets.env%23.txt":   Deny,
			"/files/secrets.env%253F.txt": Deny, // control: refused
		},
		"/reports/*.txt;v=*": { // a pattern that has a parameter itself
			"/reports/a.txt;v=1":       Allow,
			"/reports/a.env;.txt;v=1":  Deny,
			"/reports/;a.txt;v=1":      Deny,
			"/reports/a.txt%3bv=1;v=2": Deny,
		},
		"/users/*/keys": {
			"/users/me/keys":   Allow,
			"/users/me;a/keys": Allow, // the same place either way
			"/users/;me/keys":  Deny,
		},
		"/repos/*-public/issues": {
			"/repos/a-public/issues":          Allow,
			"/repos/private/issues":           Deny,
			"/repos/private;-public/issues":   Deny,
			"/repos/private%3B-public/issues": Deny,
		},
	} {
		p, err := Parse("p", []byte("network_allowlist: [ { host: code.example, methods: [GET], paths: [\""+glob+"\"] } ]"))
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range paths {
			d, _ := p.Requests().Judge("code.example", 443, Request{Method: "GET", Path: path})
			if d.Effect != want {
				t.Errorf("%s by %s: %s, want %s", path, glob, d.Effect, want)
			}
		}
	}
}
