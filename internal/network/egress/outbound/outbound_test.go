package outbound_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/outbound"
)

// answers are a resolver's, by the name that it is asked for.
type answers map[string]string

func (a answers) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	text, ok := a[host]
	if !ok || network != "ip" {
		return nil, errors.New("no such host")
	}
	var all []netip.Addr
	for one := range strings.FieldsSeq(text) {
		all = append(all, netip.MustParseAddr(one))
	}
	return all, nil
}

func host(t *testing.T, name, at string, port int, private bool) outbound.Host {
	t.Helper()
	h, err := outbound.NewHost(name, at, port, private, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestResolve: one address that is not public is enough, and the operator's word counts.
func TestResolve(t *testing.T) {
	hosts := []outbound.Host{
		host(t, "pinned.example", "127.0.0.1:4433", 443, false), host(t, "pinned.example", "127.0.0.2", 0, false),
		host(t, "*.corp.example", "", 0, true),
	}
	for name, want := range map[string]struct {
		answer string
		result string // addresses, or the error's sentence
	}{
		"a.example":           {"93.184.215.14 2606:2800:21f::1", "93.184.215.14:443 [2606:2800:21f::1]:443"},
		"twice.example":       {"93.184.215.14 ::ffff:93.184.215.14", "93.184.215.14:443"},
		"pinned.example":      {"", "127.0.0.1:4433"},
		"x.corp.example":      {"10.1.2.3 93.184.215.14", "10.1.2.3:443 93.184.215.14:443"},
		"corp.example":        {"10.1.2.3", "corp.example resolves to a private address"},
		"lo.corp.example":     {"127.0.0.1", "lo.corp.example resolves to a loopback address"},
		"meta.corp.example":   {"169.254.169.254", "meta.corp.example resolves to a metadata address"},
		"nothing.example":     {"", "nothing.example does not resolve"},
		"mixed.example":       {"93.184.215.14 10.0.0.1", "mixed.example resolves to a private address"},
		"mapped.example":      {"::ffff:127.0.0.1", "mapped.example resolves to a loopback address"},
		"nat64.example":       {"64:ff9b::a00:1", "nat64.example resolves to a private address"},
		"6to4.example":        {"2002:7f00:1::", "6to4.example resolves to a loopback address"},
		"cgnat.example":       {"100.64.1.1", "cgnat.example resolves to a private address"},
		"link.example":        {"169.254.1.1", "link.example resolves to a link-local address"},
		"zone.example":        {"2606:2800:21f::1%eth0", "zone.example resolves to an address of one link alone"},
		"meta.example":        {"100.100.100.200", "meta.example resolves to a metadata address"},
		"cast.example":        {"239.1.1.1", "cast.example resolves to a reserved address"},
		"zero.example":        {"0.0.0.0", "zero.example resolves to a reserved address"},
		"zero6.example":       {"::", "zero6.example resolves to a reserved address"},
		"doc.example":         {"203.0.113.1", "doc.example resolves to a test address"},
		"fake-ip.example":     {"198.18.0.7", "fake-ip.example resolves to a test address"},
		"xpinned.example":     {"93.184.215.14", "93.184.215.14:443"},
		"a.pinned.example":    {"93.184.215.14", "93.184.215.14:443"},
		"evilcorp.example":    {"10.1.2.3", "evilcorp.example resolves to a private address"},
		"corp.example.evil.x": {"10.1.2.3", "corp.example.evil.x resolves to a private address"},
	} {
		known := answers{name: "93.184.215.14"} // a resolver that is asked without the dot tries search domains
		if want.answer != "" {
			known[name+"."] = want.answer
		}
		target, err := outbound.NewDialer(hosts, known).Resolve(t.Context(), name, 443, anybody)
		var got []string
		for _, a := range target.Addresses {
			got = append(got, a.String())
		}
		if err != nil {
			got = []string{fault.Sentence(err, "?")}
		}
		if text := strings.Join(got, " "); text != want.result && (err == nil || !strings.HasPrefix(text, want.result)) {
			t.Errorf("%s: %s, want %s", name, text, want.result)
		}
		if err != nil && (errors.Is(err, fault.ErrForbidden) == strings.Contains(err.Error(), "does not resolve") || len(target.Addresses) > 0) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if target, err := outbound.NewDialer(hosts, answers{}).Resolve(t.Context(), "pinned.example", 80, anybody); err != nil || target.Addresses[0].String() != "127.0.0.2:80" {
		t.Errorf("another port: %v %v", target, err)
	}
}

func TestHosts(t *testing.T) {
	for _, c := range []struct {
		name, at string
		port     int
		private  bool
		wrong    string
	}{
		{"a.example", "10.0.0.1", 0, false, ""},
		{"*.a.example", "[::1]:8443", 443, false, ""},
		{"a.example", "::ffff:127.0.0.1", 0, false, ""},
		{"a.example", "", 0, true, ""},
		{"a.example", "", 0, false, "neither an address nor private"},
		{"a.example", "", 443, true, "neither an address nor private"},
		{"A.example", "10.0.0.1", 0, false, ".name is"},
		{"*.*.example", "10.0.0.1", 0, false, ".name is"},
		{"a.example.", "10.0.0.1", 0, false, ".name is"},
		{"a.example:1", "10.0.0.1", 0, false, ".name is"},
		{"", "10.0.0.1", 0, false, ".name is"},
		{"a.example", "b.example:443", 0, false, ".address is"},
		{"a.example", "10.0.0.1", 70000, false, ".port is"},
		{"a.example", "fe80::1%eth0", 0, false, ".address is"},
		{"a.example", "169.254.169.254:80", 0, false, "metadata address"},
		{"a.example", "0.0.0.0", 0, false, "reserved address"},
		{"a.example", "::", 0, false, "reserved address"},
	} {
		_, err := outbound.NewHost(c.name, c.at, c.port, c.private, nil)
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestDial: the second address is tried, and none that is not the target's.
func TestDial(t *testing.T) {
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open := netip.MustParseAddrPort(l.Addr().String())
	closed := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.3"), open.Port())
	d := outbound.NewDialer(nil, answers{})
	conn, err := d.Dial(t.Context(), outbound.Target{Addresses: []netip.AddrPort{closed, open}})
	if err != nil || conn.RemoteAddr().String() != open.String() {
		t.Fatalf("%v", err)
	}
	if err := errors.Join(conn.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Dial(t.Context(), outbound.Target{Addresses: []netip.AddrPort{closed, open}}); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}
