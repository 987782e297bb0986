package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// TestVariables: a domain is all that clients get where there is one, with a key and the CAs: the file that
// replaces a program's own has the system's, too.
func TestVariables(t *testing.T) {
	t.Parallel()
	names := func(vars []variable) (all []string) {
		for _, v := range vars {
			all = append(all, v.Name+"="+v.Value)
		}
		return all
	}
	own := api.Version{URL: "https://127.0.0.1:7433", CAFile: "/s/api-ca.pem", CABundle: "/s/bundle.pem", Domain: "box.example:7433"}
	urls := []string{"E2B_API_URL=https://127.0.0.1:7433", "E2B_SANDBOX_URL=https://127.0.0.1:7433", "E2B_API_KEY=k", "SSL_CERT_FILE=/s/bundle.pem", "NODE_EXTRA_CA_CERTS=/s/api-ca.pem"}
	for name, c := range map[string]struct {
		daemon api.Version
		urls   bool
		want   []string
	}{
		"a domain":           {own, false, []string{"E2B_DOMAIN=box.example:7433", "E2B_API_KEY=k", "SSL_CERT_FILE=/s/bundle.pem", "NODE_EXTRA_CA_CERTS=/s/api-ca.pem"}},
		"urls are asked for": {own, true, urls},
		"no domain":          {api.Version{URL: own.URL, CAFile: own.CAFile, CABundle: own.CABundle}, false, urls},
		"an older daemon":    {api.Version{URL: own.URL, CAFile: own.CAFile}, false, append(slices.Clone(urls[:3]), "SSL_CERT_FILE=/s/api-ca.pem", urls[4])},
		"a public CA":        {api.Version{URL: own.URL, Domain: "box.example"}, false, []string{"E2B_DOMAIN=box.example", "E2B_API_KEY=k"}},
	} {
		if got := names(variablesOf(c.daemon, "k", c.urls)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for _, c := range []struct {
		urls bool
		want string
	}{{false, "unset E2B_API_URL E2B_SANDBOX_URL\nexport E2B_DOMAIN="}, {true, "unset E2B_DOMAIN\nexport E2B_API_URL="}} {
		var b bytes.Buffer
		if err := writeVariables(&b, variablesOf(own, "k", c.urls)); err != nil || !strings.HasPrefix(b.String(), c.want) {
			t.Errorf("%s %v", b.String(), err)
		}
	}
}

// TestWildcards: whether names below a domain lead to the daemon here, and what to do where they don't.
func TestWildcards(t *testing.T) {
	t.Parallel()
	leads := func(to ...string) resolver {
		return func(_ context.Context, name string) ([]netip.Addr, error) {
			if !strings.HasSuffix(name, "-probe.box.example") && !strings.HasSuffix(name, "-probe.box.localhost") {
				t.Errorf("%s is looked up", name)
			}
			var all []netip.Addr
			for _, ip := range to {
				all = append(all, netip.MustParseAddr(ip))
			}
			return all, nil
		}
	}
	fails := func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no server") }
	unknown := func(_ context.Context, name string) ([]netip.Addr, error) {
		return nil, &net.DNSError{Name: name, IsNotFound: true}
	}
	for name, c := range map[string]struct {
		resolve         resolver
		domain, address string
		says            string // "": nothing
	}{
		"they do":               {leads("127.0.0.1"), "box.example:7433", "127.0.0.1:7433", ""},
		"among others":          {leads("::1", "127.0.0.1"), "box.localhost", "127.0.0.1:443", ""},
		"all addresses listen":  {leads("192.0.2.1"), "box.example", "0.0.0.0:443", ""},
		"every address listens": {leads("192.0.2.1"), "box.example", ":443", ""},
		"elsewhere":             {leads("192.0.2.1"), "box.example", "127.0.0.77:443", "lead to 192.0.2.1 on this machine, and the daemon listens at 127.0.0.77:443. Give the domain a wildcard record, *.box.example to 127.0.0.77"},
		"nowhere":               {leads(), "box.example:7433", "127.0.0.1:7433", "do not resolve on this machine. Give the domain a wildcard record"},
		"no answer":             {fails, "box.example", "127.0.0.1:443", "is not known, since the lookup of one failed on this machine (no server)"},
		"no such name":          {unknown, "box.example", "127.0.0.1:443", "do not resolve on this machine"},
		"no resolver":           {fails, "box.example", "127.0.0.1:443", "address=/box.example/127.0.0.1"},
		"below localhost":       {leads(), "box.localhost", "127.0.0.1:443", "libnss-myhostname"},
	} {
		got := wildcardProblem(t.Context(), c.resolve, c.domain, c.address)
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestNamesOfARunningDaemon: one that listens at every address is reached at any of them, whatever its URL
// says.
func TestNamesOfARunningDaemon(t *testing.T) {
	t.Parallel()
	lookUp := func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
	}
	for address, leads := range map[string]bool{"0.0.0.0:7433": true, "[::]:7433": true, ":7433": true, "127.0.0.1:7433": false} {
		l := config.Listen{Address: address, TLS: config.TLS{Auto: true}, Domain: "box.example"}
		if got := namesProblem(t.Context(), lookUp, api.Version{URL: l.URL(), Domain: l.ClientDomain(), Listens: l.Address}); (got == "") != leads {
			t.Errorf("%s: %q", address, got)
		}
	}
}

// TestBundleWithoutSystem: a file that has nobody's CA but the daemon's takes all others from a program, and
// that is said.
func TestBundleWithoutSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own, same, more := file("own", "ours"), file("same", "ours"), file("more", "theirs\nours")
	for name, c := range map[string]struct {
		daemon api.Version
		alone  bool
	}{
		"no TLS, or a public CA": {api.Version{}, false},
		"with the system's":      {api.Version{CAFile: own, CABundle: more}, false},
		"the daemon's alone":     {api.Version{CAFile: own, CABundle: same}, true},
		"an older daemon":        {api.Version{CAFile: own}, true},
	} {
		if got := trustsNobodyElse(c.daemon); got != c.alone {
			t.Errorf("%s: %v", name, got)
		}
	}
}
