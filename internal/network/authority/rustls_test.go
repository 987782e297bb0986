package authority

import (
	"crypto/x509"
	"slices"
	"strings"
	"testing"
)

// rustlsExcludes tells whether rustls takes a leaf's name for one of an excluded domain: the domain
// itself, whatever lies below it, and a wildcard that could stand for one, which OpenSSL, Go and
// Node let pass. The long tests ask rustls itself (TestMoreClients).
func rustlsExcludes(excluded, name string) bool {
	domain := strings.TrimPrefix(excluded, ".")
	if above, star := strings.CutPrefix(name, "*."); star {
		_, parent, _ := strings.Cut(domain, ".")
		return parent == above || above == domain || strings.HasSuffix(above, "."+domain)
	}
	return name == domain && excluded == domain || strings.HasSuffix(name, "."+domain)
}

// checkConstraints looks at a chain and its root: no name of the leaf is excluded for rustls, and
// what is excluded is never a permitted name, nor above one.
func checkConstraints(t *testing.T, what string, ca []byte, leaf Leaf) (excluded int) {
	t.Helper()
	sent := certificates(t, leaf.ChainPEM)
	for _, c := range []*x509.Certificate{sent[1], certificates(t, ca)[0]} {
		for _, domain := range c.ExcludedDNSDomains {
			excluded++
			for _, name := range slices.Concat(sent[0].DNSNames, c.PermittedDNSDomains) {
				if rustlsExcludes(domain, strings.TrimPrefix(name, ".")) {
					t.Errorf("%s: %s, excluded by %q in %q", what, name, domain, c.Subject.CommonName)
				}
			}
			if !strings.HasPrefix(domain, ".") {
				t.Errorf("%s: %q is excluded with the name itself", what, domain)
			}
		}
	}
	return excluded
}

// TestExclusionsThatRustlsRefuses: E2B's newest SDK and uv speak by rustls, which
// refuses a leaf of "*.example" for each domain that is excluded one label below.
func TestExclusionsThatRustlsRefuses(t *testing.T) {
	t.Parallel()
	for what, domain := range map[string]string{"an API": "", "with a domain": "box.example", "with a deep domain": "a.deep.box.example", "with one above": "example.com"} {
		for _, hosts := range [][]string{
			{"localhost"},
			{"localhost", "127.0.0.1", "api.box.example"},
			{"api.box.example", "a.deep.box.example", "else.example"},
			{"deep.box.example", "a.deep.box.example", "b.a.deep.box.example"},
			{"box.example.com", "abox.example", "api.example.com"},
		} {
			a, _ := open(t)
			issued := func() (Leaf, error) { return a.Certificate(t.Context(), hosts) }
			if domain != "" {
				issued = func() (Leaf, error) { return a.Below(t.Context(), hosts, domain) }
			}
			leaf, err := issued()
			if err != nil {
				t.Fatal(err)
			}
			if n := checkConstraints(t, what+" of "+strings.Join(hosts, " "), a.CAPEM(), leaf); n == 0 && domain == "" {
				t.Errorf("%v: nothing is excluded, so nothing was looked at", hosts)
			}
		}
	}
	h, _ := openHosts(t)
	for _, hosts := range [][]string{{"api.any.example", "*.any.example"}, {"any.example", "*.any.example"}, {"api.example", "*.v2.api.example"}, {"any.example", "a.any.example", "*.b.any.example"}} {
		for _, host := range hosts {
			name := strings.Replace(host, "*", "x", 1)
			ca, leaf := ofHosts(t, h, hosts, name)
			checkConstraints(t, strings.Join(hosts, " "), ca, leaf)
		}
	}
}
