package policy_test

import (
	"net/netip"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/address"
)

// TestANarrowingClosesWhatAnAddressCarries: an IPv6 address that carries an IPv4 one leads to that, so
// who closed that one has closed it, however the name's owner writes it. The control: it is closed as it
// is, and others are open.
func TestANarrowingClosesWhatAnAddressCarries(t *testing.T) {
	n, err := policy.NewNarrowing(nil, []string{"93.184.0.0/16"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	open := func(text string) bool {
		is, _ := n.Address("api.example", netip.MustParseAddr(text))
		return is
	}
	if open("93.184.215.14") || open("::ffff:93.184.215.14") || !open("93.185.215.14") || !open("64:ff9b::93.185.215.14") {
		t.Fatal("INCONCLUSIVE: it does not close what it names, or more")
	}
	for _, text := range []string{"64:ff9b::93.184.215.14", "2002:5db8:d70e::1", "2606:2800::5efe:93.184.215.14"} {
		if class := address.ClassOf(netip.MustParseAddr(text)); class != address.Public {
			t.Fatalf("INCONCLUSIVE: %s is %s, so that nobody dials it", text, class)
		}
		if open(text) {
			t.Errorf("%s is open, and 93.184.215.14, to which it leads, is closed", text)
		}
	}
}

// TestANarrowingOfARangeHoweverItIsWritten: the range of all IPv4 addresses closes the network whichever of them
// it is written with, and an IPv6 address that leads to an IPv4 one closes that.
func TestANarrowingOfARangeHoweverItIsWritten(t *testing.T) {
	for entry, want := range map[string][3]bool{ // open: the name, an IPv6 address, the IPv4 one
		"0.0.0.0/0":             {false, false, false},
		"93.185.0.1/0":          {false, false, false},
		"93.185.0.1/16":         {true, true, true},
		"::/0":                  {true, false, true},
		"2606:2800::1/0":        {true, false, true},
		"64:ff9b::5db8:d70e":    {true, true, false},
		"::ffff:93.184.215.14":  {true, true, false},
		"64:ff9b::93.185.0.1":   {true, true, true},
		"2606:2800::/32":        {true, false, true},
		"64:ff9b::5db8:d70e/96": {true, true, true}, // a range of addresses that are carried says nothing of these
	} {
		n, err := policy.NewNarrowing(nil, []string{entry}, nil)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := n.Name("api.example")
		six, _ := n.Address("api.example", netip.MustParseAddr("2606:2800::2"))
		four, _ := n.Address("api.example", netip.MustParseAddr("93.184.215.14"))
		if got := [3]bool{name, six, four}; got != want {
			t.Errorf("%s: %v, want %v", entry, got, want)
		}
	}
}
