package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/policy"
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
