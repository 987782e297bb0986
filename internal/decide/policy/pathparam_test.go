package policy

import (
	"strings"
	"testing"
)

// TestAPathParameterIsNoEndOfASegment: servers written in Java take what stands behind a semicolon off
// each segment, so that a pattern which ends in something else is met by another place. A path that
// could be read in another way is refused where paths count.
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
		"/pkgs/*": {
			"/pkgs/C":        Allow,
			"/pkgs/C%23":     Allow, // the name C#: whoever ends the path there comes to what is allowed as well
			"/pkgs/C%23.net": Allow,
			"/pkgs/C%3F":     Deny, // what stands behind it would be a query, which is judged by nobody
			"/pkgs/C%3f":     Deny,
			"/pkgs/C%2523":   Deny,
			"/pkgs/..%23x":   Deny,
			"/pkgs/%23x":     Deny, // the list of all
			"/pkgs/C%23/x":   Deny,
		},
		"/pkgs/**": {
			"/pkgs/C%23/x":        Allow,
			"/pkgs/%23x":          Deny, // the list of all, which is not below itself
			"/pkgs/a/%23x":        Allow,
			"/pkgs/a/..%23/x":     Deny,
			"/pkgs/a/%2e%2e%23/x": Deny,
			"/pkgs/C%23/../../x":  Deny,
			"/pkgs/C%23/x%3Fy":    Deny,
			"/pkgs/a//%23":        Deny,
			"/other%23/../pkgs/a": Deny,
			"/%23/pkgs/x":         Deny,
			"/pkgs%23/x":          Deny,
		},
		"/langs/C%23/*": { // a pattern that has one itself
			"/langs/C%23/x": Allow,
			"/langs/C/x":    Deny,
			"/langs/C%23x/": Deny,
			"/langs/D%23/x": Deny,
		},
		"/langs/*/docs": {
			"/langs/C/docs":    Allow,
			"/langs/C%23/docs": Deny, // /langs/C is another place, which the policy does not have
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

// TestAtHostsOfGitNoPathEndsTwice: what a server that decodes first takes for a push is none of git's as it is
// written, so at a host with rules for git an escaped # is refused in every path. The control: without it.
func TestAtHostsOfGitNoPathEndsTwice(t *testing.T) {
	p, err := Parse("p", []byte("network_allowlist:\n  - { host: code.example, git: { repos: [acme/*] } }\n  - { host: code.example, methods: [GET, POST], paths: [\"/acme/**\"] }\n"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Effect{
		"/acme/app/git-receive-pack%23x": Deny, "/acme/app%23/x": Deny, "/acme/C%23": Deny, "/acme/app/issues": Allow,
	} {
		d, _ := p.Requests().Judge("code.example", 443, Request{Method: "POST", Path: path})
		if d.Effect != want || want == Deny && !strings.Contains(d.Reason, "escapes a #") {
			t.Errorf("%s: %+v", path, d)
		}
	}
}
