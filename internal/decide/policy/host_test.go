package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

const namesDocument = `network_allowlist: [ "api.example", "*.Example.org", "*.deep.example.org:8443", "host.example:8443", "host.example:22" ]
`

func TestHosts(t *testing.T) {
	p := mustParse(t, namesDocument)
	for name, want := range map[string]struct {
		rule  string
		ports []int // on which it is allowed
	}{
		"api.example":               {"network_allowlist.api.example", []int{80, 443}},
		"a.example.org":             {"network_allowlist.*.example.org", []int{80, 443}},
		"b.a.example.org":           {"network_allowlist.*.example.org", []int{80, 443}},
		"a.deep.example.org":        {"network_allowlist.*.example.org", []int{80, 443, 8443}},
		"host.example":              {"network_allowlist.host.example:8443", []int{22, 8443}},
		"example.org":               {},
		"aexample.org":              {},
		"api.example.org.evil.test": {},
		"x.api.example":             {},
		"api.examples":              {},
		"pi.example":                {},
		"evil.test":                 {},
		"":                          {},
		"127.0.0.1":                 {},
		"*.example.org.":            {},
	} {
		if got := p.HostPorts(name); fmt.Sprint(got) != fmt.Sprint(want.ports) {
			t.Errorf("%q: ports %v, want %v", name, got, want.ports)
		}
		if d := p.Host(name, 0); d.Allowed() != (want.rule != "") || d.Allowed() && d.Rule != want.rule {
			t.Errorf("%q: %+v, want %q", name, d, want.rule)
		}
		for _, port := range []int{22, 25, 80, 443, 8443} {
			listed := slices.Contains(want.ports, port)
			d := p.Host(name, port)
			if d.Allowed() != listed || d.Reason == "" || d.ResolvedBy != policy.ByNetwork || !listed && d.Rule != "network_default" {
				t.Errorf("%q on %d: %+v", name, port, d)
			}
		}
	}
}

// TestWhyAHostIsRefused: the reason names what is there, and the lines allow it.
func TestWhyAHostIsRefused(t *testing.T) {
	none := mustParse(t, "packages: { default: deny }\n")
	some := mustParse(t, namesDocument)
	for _, c := range []struct {
		p       *policy.Policy
		name    string
		port    int
		reason  string
		suggest string
	}{
		{none, "evil.test", 0, "a sandbox reaches package registries and nothing else", "evil.test"},
		{some, "evil.test", 443, "evil.test is not on the policy's network_allowlist", "evil.test"},
		{some, "host.example", 80, "the policy's network_allowlist has host.example on port 22, 8443, and not on 80", "host.example"},
		{some, "evil.test", 25, "evil.test is not on the policy's network_allowlist", "evil.test:25"},
		{some, "127.0.0.1", 80, "127.0.0.1 is not on the policy's network_allowlist", ""},
		{some, "a_b.test", 80, "a_b.test is not on the policy's network_allowlist", ""},
	} {
		d := c.p.Host(c.name, c.port)
		suggest := ""
		if c.suggest != "" {
			suggest = "network_allowlist:\n  - \"" + c.suggest + "\"\n"
		}
		if d.Reason != c.reason || d.Suggest != suggest {
			t.Errorf("%s on %d: %q, %q", c.name, c.port, d.Reason, d.Suggest)
		}
		if suggest != "" && !mustParse(t, d.Suggest).Host(c.name, c.port).Allowed() {
			t.Errorf("%q does not allow %s on %d", d.Suggest, c.name, c.port)
		}
	}
}

// TestHostsThatCannotBeListed: more ports, or names, than a sandbox can have.
func TestHostsThatCannotBeListed(t *testing.T) {
	var ports, names []string
	for i := range 9 {
		ports = append(ports, fmt.Sprintf("a.example:%d", 8000+i))
	}
	for i := range 501 {
		names = append(names, fmt.Sprintf("n%d.example", i))
	}
	for want, list := range map[string][]string{
		"a.example is listed on 9 ports, and a name can have 8": ports,
		"has 501 entries, and at most 500 are read":             names,
	} {
		_, err := policy.Parse("p", []byte("network_allowlist: [ \""+strings.Join(list, "\", \"")+"\" ]\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	mustParse(t, "network_allowlist: [ \""+strings.Join(ports[:8], "\", \"")+"\" ]\n")
}

// TestNarrowedHosts: both policies have to list a name.
func TestNarrowedHosts(t *testing.T) {
	p, _ := mustParse(t, namesDocument).NarrowedBy(mustParse(t, "network_allowlist: [ \"api.example:443\", \"evil.test\" ]\n"))
	if d := p.Host("api.example", 443); !d.Allowed() || fmt.Sprint(p.HostPorts("api.example")) != "[443]" {
		t.Errorf("%+v %v", d, p.HostPorts("api.example"))
	}
	for _, name := range []string{"evil.test", "a.example.org"} {
		if p.Host(name, 443).Allowed() || len(p.HostPorts(name)) > 0 {
			t.Errorf("%s is allowed", name)
		}
	}
	closed, _ := p.NarrowedBy(mustParse(t, "packages: { default: deny }\n"))
	if closed.Host("api.example", 443).Allowed() {
		t.Error("a policy without names leaves one open")
	}
}

const tcpDocument = `network_allowlist:
  - "db.example:9000"
  - { host: db.example, port: 5432, tcp: true }
  - { host: "*.db.example", port: 6000, tcp: true }
  - { host: web.example, port: 8080 }
  - { host: web.example, tcp: false }
`

// TestHostsOfAnyProtocol: only where an entry says so, on the port that it says, and as
// long as every policy that narrows agrees.
func TestHostsOfAnyProtocol(t *testing.T) {
	p := mustParse(t, tcpDocument)
	for name, want := range map[string]struct{ listed, any string }{
		"db.example":   {"[5432 9000]", "[5432]"},
		"a.db.example": {"[6000]", "[6000]"},
		"web.example":  {"[80 443 8080]", "[]"},
		"evil.example": {"[]", "[]"},
	} {
		passes := []int{}
		for _, port := range []int{22, 80, 443, 5432, 6000, 8080, 9000} {
			d := p.HostTCP(name, port)
			if d.Allowed() {
				passes = append(passes, port)
				if rule := fmt.Sprintf("network_allowlist.%s:%d", strings.Replace(name, "a.db", "*.db", 1), port); d.Rule != rule {
					t.Errorf("%s on %d: by %s, want %s", name, port, d.Rule, rule)
				}
			} else if d.Rule != "network_default" || d.Reason == "" {
				t.Errorf("%s on %d: %+v", name, port, d)
			}
		}
		if got := fmt.Sprint(p.HostPorts(name)); got != want.listed || fmt.Sprint(passes) != want.any {
			t.Errorf("%s: listed on %s and for any protocol on %v; want %+v", name, got, passes, want)
		}
	}
	if d := p.HostTCP("db.example", 9000); !strings.Contains(d.Reason, "has db.example on port 9000 for TLS and HTTP alone") {
		t.Error(d.Reason)
	}
	both, _ := p.NarrowedBy(mustParse(t, tcpDocument+"version: \"2\"\n"))
	without, _ := p.NarrowedBy(mustParse(t, "network_allowlist: [ \"db.example:5432\" ]\n"))
	if !both.HostTCP("db.example", 5432).Allowed() || without.HostTCP("db.example", 5432).Allowed() || !without.Host("db.example", 5432).Allowed() {
		t.Errorf("%+v, %+v, %+v", both.HostTCP("db.example", 5432), without.HostTCP("db.example", 5432), without.Host("db.example", 5432))
	}
	named := slices.ContainsFunc(p.Check(), func(e policy.Explanation) bool {
		return e.Enforced && e.Line == 3 && e.Key == "network_allowlist[1].tcp" && strings.HasPrefix(e.Meaning, "every protocol passes on port 5432 of db.example, unread")
	})
	if !named {
		t.Errorf("what tcp means is not told: %+v", p.Check())
	}
}

// TestEntriesThatCannotBe: each with its place and what is wrong.
func TestEntriesThatCannotBe(t *testing.T) {
	for entry, want := range map[string]string{
		"{ host: db.example, tcp: true }":               "network_allowlist[0].tcp needs a port beside it",
		"{ host: db.example, port: 443, tcp: true }":    "network_allowlist[0].tcp can't be true on port 443",
		"{ host: db.example, port: 80, tcp: true }":     "network_allowlist[0].tcp can't be true on port 80",
		"{ host: db.example, port: 22, tcp: yes }":      "network_allowlist[0].tcp must be true or false",
		"{ host: db.example, port: 0 }":                 "network_allowlist[0].port must be from 1 to 65535",
		"{ host: db.example, port: \"22\" }":            "network_allowlist[0].port must be a number",
		"{ host: \"db.example:22\", port: 22 }":         "has a port, which stands under the key port here",
		"{ host: 10.0.0.1, port: 22, tcp: true }":       "is an address",
		"{ port: 22, tcp: true }":                       "network_allowlist[0] needs a host",
		"{ host: db.example, port: 22, protocol: tcp }": "unknown key network_allowlist[0].protocol",
		"[ db.example ]":                                "network_allowlist[0] must be text, and is a list",
	} {
		_, err := policy.Parse("p", []byte("network_allowlist: [ "+entry+" ]\n"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "p:1:") {
			t.Errorf("%s: %v, want %q", entry, err, want)
		}
	}
}

// TestNetworkProxy: off unless it is asked for, and told of.
func TestNetworkProxy(t *testing.T) {
	for document, on := range map[string]bool{"network_proxy: true\n": true, "network_proxy: false\n": false, "name: p\n": false} {
		p := mustParse(t, document)
		if p.NetworkProxy() != on {
			t.Errorf("%q: %v", document, p.NetworkProxy())
		}
		told := slices.ContainsFunc(p.Check(), func(e policy.Explanation) bool { return e.Key == "network_proxy" && e.Enforced })
		if told != strings.HasPrefix(document, "network_proxy") {
			t.Errorf("%q: %+v", document, p.Check())
		}
	}
	if _, err := policy.Parse("p", []byte("network_proxy: 3128\n")); err == nil {
		t.Error("a number is taken")
	}
}
