package address_test

import (
	"net/netip"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/address"
)

func TestClassOf(t *testing.T) {
	for want, addresses := range map[address.Class][]string{
		address.Loopback: {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2606:2800::5efe:127.0.0.1"},
		address.Metadata: {
			"169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16",
		},
		address.LinkLocal: {"169.254.1.1", "fe80::1", "fe80::1%eth0", "fe80::5efe:5.5.5.5"},
		address.Private:   {"10.1.2.3", "::ffff:10.0.0.1", "172.31.0.1", "192.168.1.1", "100.64.0.1", "100.127.255.255", "fd12::1", "64:ff9b::a00:1", "2002:a00:1::", "2606:2800::5efe:10.0.0.1", "2606:2800::200:5efe:192.168.1.1", "2002:505:505::5efe:10.0.0.1"},
		address.Reserved: {
			"0.0.0.0", "0.1.2.3", "::", "255.255.255.255", "224.0.0.1", "239.1.2.3", "ff02::1", "ff0e::1", "240.0.0.1", "192.0.0.1", "192.88.99.1",
			"::10.0.0.1", "::8.8.8.8", "64:ff9b:1::1", "100::1", "fec0::1", "2001::1", "2001:0:a00:1::f5ff:fffe", "2001:0:505:505:0:0:f5ff:fffe", "64:ff9b:1::10.0.0.1", "::ffff:0:10.0.0.1", "2606:2800::5efe:0.0.0.1", "2001:10::1", "4000::1", "5f00::1",
		},
		address.Test:   {"192.0.2.1", "203.0.113.80", "198.51.100.7", "198.18.0.1", "198.19.255.255", "2001:db8::1", "3fff::1", "3fff:fff::1"},
		address.Public: {"93.184.215.14", "172.32.0.1", "100.63.255.255", "100.128.0.0", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "2001:200::1", "4.4.4.4", "2002:505:505::", "64:ff9b::505:505", "2606:2800::5efe:5.5.5.5", "2606:2800::5efe:0:a00:1"},
	} {
		for _, a := range addresses {
			if got := address.ClassOf(netip.MustParseAddr(a)); got != want {
				t.Errorf("ClassOf(%s) = %s, want %s", a, got, want)
			}
		}
	}
	if got := address.ClassOf(netip.Addr{}); got != address.Reserved {
		t.Errorf("of no address: %s", got)
	}
}
