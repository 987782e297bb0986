// Package address sorts IP addresses by where they lead: to the internet, into a private
// network, to this machine itself, or to nothing that anybody should be led to.
package address

import "net/netip"

// Class is an address class.
type Class string

// The classes. Metadata are the addresses at which clouds answer questions
// about the machine itself; Test are those set aside for documentation and
// benchmarks, which transparent proxies hand out for every name; Reserved is
// everything that no host on the internet has.
const (
	Loopback  Class = "loopback"
	LinkLocal Class = "link-local"
	Metadata  Class = "metadata"
	Private   Class = "private"
	Public    Class = "public"
	Test      Class = "test"
	Reserved  Class = "reserved"
)

// prefixClasses are read in order; the first that contains an address decides.
func prefixClasses() []struct {
	prefix string
	class  Class
} {
	return []struct {
		prefix string
		class  Class
	}{
		{"169.254.169.254/32", Metadata},
		{"100.100.100.200/32", Metadata},
		{"168.63.129.16/32", Metadata},
		{"192.0.0.192/32", Metadata},
		{"fd00:ec2::/32", Metadata},
		{"fd20:ce::254/128", Metadata},
		{"127.0.0.0/8", Loopback},
		{"::1/128", Loopback},
		{"169.254.0.0/16", LinkLocal},
		{"fe80::/10", LinkLocal},
		{"10.0.0.0/8", Private},
		{"172.16.0.0/12", Private},
		{"192.168.0.0/16", Private},
		{"100.64.0.0/10", Private},
		{"fc00::/7", Private},
		{"0.0.0.0/8", Reserved},
		{"192.0.0.0/24", Reserved},
		{"192.0.2.0/24", Test},
		{"192.88.99.0/24", Reserved}, // relays of 6to4, given up
		{"198.18.0.0/15", Test},
		{"198.51.100.0/24", Test},
		{"203.0.113.0/24", Test},
		{"224.0.0.0/3", Reserved}, // multicast, future use, broadcast
		{"2001:db8::/32", Test},
		{"3fff::/20", Test},
		{"2001::/23", Reserved}, // Teredo and other protocol assignments
		{"fec0::/10", Reserved},
		{"ff00::/8", Reserved},
	}
}

// ClassOf tells an address's class. An IPv6 address that carries an IPv4 one leads to that, or
// to whoever passes it on to that: it has the first class of these that is not public.
func ClassOf(a netip.Addr) Class {
	a = a.Unmap().WithZone("")
	if !a.IsValid() {
		return Reserved
	}
	translated, tunnelled := carried(a)
	if translated.IsValid() {
		a = translated
	}
	for _, inner := range tunnelled {
		if class := classOf(inner); class != Public {
			return class
		}
	}
	return classOf(a)
}

// classOf is the class of an address by itself.
func classOf(a netip.Addr) Class {
	for _, p := range prefixClasses() {
		if netip.MustParsePrefix(p.prefix).Contains(a) {
			return p.class
		}
	}
	if a.Is6() && !netip.MustParsePrefix("2000::/3").Contains(a) {
		return Reserved
	}
	return Public
}

// Carried are the IPv4 addresses to which an IPv6 one may lead by carrying them: as itself where it is
// translated or tunnelled (NAT64, 6to4, ISATAP), and mapped (::ffff:0:0/96). Of an IPv4 address there are none.
func Carried(a netip.Addr) []netip.Addr {
	if a.Is4In6() {
		return []netip.Addr{a.Unmap()}
	}
	translated, all := carried(a.WithZone(""))
	if translated.IsValid() {
		all = append(all, translated)
	}
	return all
}

// carried are the IPv4 addresses that an IPv6 one carries. A packet to one that is translated
// (NAT64, 64:ff9b::/96; 6to4, 2002::/16) goes to that alone; a router at the prefix sends what
// is for one that is tunnelled (ISATAP, an interface of 0:5efe or 200:5efe and the address) there.
// Teredo's, all of which are reserved, are not read.
func carried(a netip.Addr) (translated netip.Addr, tunnelled []netip.Addr) {
	if !a.Is6() {
		return translated, nil
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a):
		translated = netip.AddrFrom4([4]byte(b[12:16]))
	case netip.MustParsePrefix("2002::/16").Contains(a):
		translated = netip.AddrFrom4([4]byte(b[2:6]))
	}
	if b[8]&^0x03 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe { // whatever the bits for "universal" and "group" say
		tunnelled = append(tunnelled, netip.AddrFrom4([4]byte(b[12:16])))
	}
	return translated, tunnelled
}
