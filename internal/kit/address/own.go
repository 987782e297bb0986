package address

import (
	"errors"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// Own tells whether an address is this host's own, of whatever class it is: in the network
// namespace of the process that asks, at this moment. The kernel says so by the way on which it
// would send to it; nothing is sent. If it can't be told, it is taken for the host's own. An IPv6 address
// that carries an IPv4 one of this host's (see ClassOf) is its own, too: it comes back here.
func Own(a netip.Addr) bool {
	a = a.Unmap()
	return slices.ContainsFunc(append(Carried(a), a), isOwnAddress)
}

// isOwnAddress is Own of an address by itself.
func isOwnAddress(a netip.Addr) bool {
	const discard = 9
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, discard)))
	if err != nil {
		return !unreachable(err)
	}
	defer func() { _ = conn.Close() }() // nothing was sent on it
	local, ok := conn.LocalAddr().(*net.UDPAddr)
	return !ok || local.AddrPort().Addr().Unmap().WithZone("") == a.WithZone("")
}

// unreachable tells whether there is no way to an address at all.
func unreachable(err error) bool {
	for _, none := range []error{unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EADDRNOTAVAIL, unix.EAFNOSUPPORT, unix.EINVAL} {
		if errors.Is(err, none) {
			return true
		}
	}
	return false
}
