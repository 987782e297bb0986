package daemon

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/network/dialer"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/outbound"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// TestWhereTheDialerIsLed: by the upstreams, their logs, addresses and proxies, and by the
// operator's hosts; and no secret goes to it.
func TestWhereTheDialerIsLed(t *testing.T) {
	t.Parallel()
	ap := netip.MustParseAddrPort
	got := allowed([]upstream.Config{
		{Index: "https://Packages.example./simple/", Username: "ann", Password: "secret", Token: "secret", Proxy: "http://bob:secret@proxy.example:3128"},
		{Index: "http://index.example/", Address: "127.0.0.1:8081", LogURL: "https://10.0.0.9/log/"},
	}, []outbound.Host{
		{Name: "db.example", Address: ap("10.0.0.5:5432")},
		{Name: "all.example", Address: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.6"), 0)},
		{Name: "*.corp.example", Private: true},
	})
	want := dialer.Allowed{
		Pins: []dialer.Pin{
			{At: ap("127.0.0.1:8081"), Others: true}, {At: ap("10.0.0.9:0"), Others: true}, {At: ap("10.0.0.5:5432")}, {At: ap("10.0.0.6:0")},
		},
		Names: []dialer.Name{
			{Name: "packages.example", Others: true}, {Name: "proxy.example"}, {Name: "index.example", Others: true}, {Name: "*.corp.example", Private: true},
		},
	}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
		t.Error(d)
	}
}
