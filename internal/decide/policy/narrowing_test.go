package policy

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func narrowing(t *testing.T, allow, deny []string) Narrowing {
	t.Helper()
	n, err := NewNarrowing(allow, deny, nil)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNarrowingOfNames(t *testing.T) {
	for _, c := range []struct {
		allow, deny []string
		open, shut  []string
	}{
		{nil, nil, []string{"a.example"}, nil},
		{nil, []string{"0.0.0.0/0"}, nil, []string{"a.example"}},
		{[]string{"0.0.0.0/0"}, []string{"0.0.0.0/0"}, []string{"a.example"}, nil},
		{[]string{"a.example", "*.B.example"}, []string{"0.0.0.0/0"}, []string{"a.example", "x.b.example", "x.y.b.example"}, []string{"b.example", "xa.example", "a.example.evil.example", "xb.example", "c.example"}},
		{nil, []string{"192.0.2.0/24"}, []string{"a.example"}, nil},
	} {
		n := narrowing(t, c.allow, c.deny)
		for _, host := range c.open {
			if open, reason := n.Name(host); !open {
				t.Errorf("%v: %s is closed: %s", n, host, reason)
			}
		}
		for _, host := range c.shut {
			if open, reason := n.Name(host); open || !strings.Contains(reason, host) {
				t.Errorf("%v: %s: %t, %q", n, host, open, reason)
			}
		}
	}
}

func TestNarrowingOfAddresses(t *testing.T) {
	n := narrowing(t, nil, []string{"192.0.2.0/24", "198.51.100.7", "2001:DB8::/32"})
	for addr, want := range map[string]bool{
		"192.0.2.1": false, "::ffff:192.0.2.1": false, "192.0.3.1": true, "198.51.100.7": false, "198.51.100.8": true,
		"2001:db8::1": false, "2001:db8::1%eth0": false, "2001:db9::1": true,
	} {
		open, reason := n.Address("a.example", netip.MustParseAddr(addr))
		if open != want || open == (reason != "") {
			t.Errorf("%s: %t %q", addr, open, reason)
		}
	}
	all := narrowing(t, []string{"a.example"}, []string{Everything})
	for host, want := range map[string]bool{"a.example": true, "b.example": false} {
		for _, addr := range []string{"192.0.2.1", "2001:db8::1"} {
			if open, _ := all.Address(host, netip.MustParseAddr(addr)); open != want {
				t.Errorf("%s at %s: %t", host, addr, open)
			}
		}
	}
	// A kept narrowing that can't be read any more closes.
	if open, _ := (Narrowing{Deny: []string{"192.0.2.0/33"}}).Address("a.example", netip.MustParseAddr("203.0.113.1")); open {
		t.Error("an entry that can't be read opened an address")
	}
}

func TestNarrowingWithoutInternet(t *testing.T) {
	no, yes := false, true
	n, err := NewNarrowing([]string{"b.example"}, nil, &no)
	if err != nil {
		t.Fatal(err)
	}
	if open, _ := n.Name("a.example"); open {
		t.Error("allow_internet_access: false left a name open")
	}
	if open, _ := n.Name("b.example"); !open {
		t.Error("allowOut does not beat allow_internet_access: false")
	}
	if _, err := NewNarrowing([]string{Everything}, nil, &no); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a contradiction was taken: %v", err)
	}
	if n, err = NewNarrowing(nil, nil, &yes); err != nil || !n.IsZero() {
		t.Errorf("%v %v", n, err)
	}
}

func TestNarrowingRefuses(t *testing.T) {
	long := make([]string, 501)
	for i := range long {
		long[i] = "192.0.2.1"
	}
	for want, lists := range map[string][2][]string{
		"names can only be in allowOut":     {nil, {"a.example"}},
		"neither an address nor a range":    {nil, {"192.0.2.0/33"}},
		`add "0.0.0.0/0" to denyOut`:        {{"a.example"}, {"192.0.2.0/24"}},
		"addresses have no route":           {{"192.0.2.1"}, {Everything}},
		`"192.0.2.0/24" can't be given`:     {{"192.0.2.0/24"}, {Everything}},
		"has a port":                        {{"a.example:80"}, {Everything}},
		"is a URL or a range":               {{"https://a.example/"}, {Everything}},
		"is not a host name":                {{"a b.example"}, {Everything}},
		"is a wildcard over a whole":        {{"*.example"}, {Everything}},
		`"" is not a host name`:             {{""}, {Everything}},
		"has more than 500 entries":         {nil, long},
		`"fe80::1%eth0" is neither`:         {nil, {"fe80::1%eth0"}},
		`"::ffff:192.0.2.0/120" is neither`: {nil, {"::ffff:192.0.2.0/120"}},
	} {
		if _, err := NewNarrowing(lists[0], lists[1], nil); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", lists, err, want)
		}
	}
}
