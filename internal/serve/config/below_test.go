package config

import (
	"strings"
	"testing"
)

// TestBelow: a domain is all that a listener needs.
func TestBelow(t *testing.T) {
	t.Parallel()
	files := TLS{CertFile: "/c", KeyFile: "/k"}
	for domain, c := range map[string]struct {
		of, want Listen
		public   string
	}{
		"sandbox.localhost": {Listen{}, Listen{Address: "127.0.0.1:7433", TLS: TLS{Auto: true}, Domain: "sandbox.localhost"}, "sandbox.localhost:7433"},
		"Box.Example.:8443": {Listen{}, Listen{Address: "127.0.0.1:8443", TLS: TLS{Auto: true}, Domain: "box.example"}, "box.example:8443"},
		"box.example:443":   {Listen{Address: "0.0.0.0:7433", TLS: files}, Listen{Address: "0.0.0.0:443", TLS: files, Domain: "box.example"}, "box.example"},
		"other.example":     {Listen{Address: "[::1]:9", Domain: "box.example"}, Listen{Address: "[::1]:9", TLS: TLS{Auto: true}, Domain: "other.example"}, "other.example:9"},
	} {
		got, err := c.of.Below(domain)
		if err != nil || got.Address != c.want.Address || got.TLS != c.want.TLS || got.Domain != c.want.Domain || got.PublicDomain() != c.public || got.Check() != nil {
			t.Errorf("%s: %+v %v, %v", domain, got, err, got.Check())
		}
	}
	for _, domain := range []string{"localhost", "a:b:c", ":443", ""} {
		if got, err := (Listen{}).Below(domain); err == nil {
			t.Errorf("%q: %+v", domain, got)
		}
	}
	for _, domain := range []string{"box..example", "127.0.0.1", "*.box.example", "box.example:http", "127.1", "box.1:443", "0x7f.1", "bücher.example", "box.example:65536", "-box.example", "box_1.example", "box.example..", "[::1]:443"} {
		if got, err := (Listen{}).Below(domain); err == nil && got.Check() == nil {
			t.Errorf("%q: %+v", domain, got)
		}
	}
	for _, domain := range []string{"box.example:http", "box.example:65536", "box.example:"} { // nobody has named an address
		if _, err := (Listen{}).Below(domain); err == nil || !strings.Contains(err.Error(), "the domain is \""+domain+"\"; its port must be a number") {
			t.Errorf("%s: %v", domain, err)
		}
	}
	for tls, refused := range map[bool]bool{true: true, false: false} { // below a name of one part no certificate is taken
		l := Listen{Address: "127.0.0.1:8443", TLS: TLS{Auto: tls}, Domain: "localhost"}
		if err := l.Check(); (err != nil) != refused || (l.ClientDomain() == "") == tls {
			t.Errorf("%v: %v, %q", tls, err, l.ClientDomain())
		}
	}
	written := Listen{Address: "127.0.0.1:8443", TLS: TLS{Auto: true}, Domain: "box.example:8443"}
	if err := written.Check(); err == nil || err.Error() != `.domain is "box.example:8443"; write it without a port: clients are told that of listen.address` {
		t.Error(err)
	}
}
