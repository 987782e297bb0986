package address

import (
	"net/netip"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOwn: a public address that this host has is its own, from when it has it; others are
// not, and neither is one to which there is no way.
func TestOwn(t *testing.T) {
	runtime.LockOSThread() // for good: the thread ends with the test, in a network of its own
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	mine, other := netip.MustParseAddr("93.184.215.14"), netip.MustParseAddr("93.184.215.15")
	for _, a := range []netip.Addr{mine, other, netip.MustParseAddr("2606:2800::1")} {
		if Own(a) {
			t.Errorf("%s is its own, and it has none", a)
		}
	}
	give(t, mine)
	for a, own := range map[netip.Addr]bool{
		mine: true, netip.AddrFrom16(mine.As16()): true, other: false, netip.MustParseAddr("2606:2800::1"): false,
		netip.MustParseAddr("64:ff9b::93.184.215.14"): true, netip.MustParseAddr("64:ff9b::93.184.215.15"): false,
		netip.MustParseAddr("2002:5db8:d70e::1"): true, netip.MustParseAddr("2002:5db8:d70f::1"): false,
		netip.MustParseAddr("2606:2800::5efe:93.184.215.14"): true, netip.MustParseAddr("2606:2800::200:5efe:93.184.215.14"): true,
		netip.MustParseAddr("2606:2800::5efe:93.184.215.15"): false,
	} {
		if Own(a) != own {
			t.Errorf("%s: its own is %v", a, Own(a))
		}
	}
}

// give gives the loopback interface an address.
func give(t *testing.T, a netip.Addr) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	set := func(request uint, fill func(*unix.Ifreq) error) {
		t.Helper()
		r, err := unix.NewIfreq("lo")
		if err == nil {
			err = fill(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(fd, request, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ip, mask := a.As4(), []byte{255, 255, 255, 255}
	set(unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(ip[:]) })
	set(unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr(mask) })
	set(unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error {
		r.SetUint16(unix.IFF_UP | unix.IFF_LOOPBACK | unix.IFF_RUNNING)
		return nil
	})
}
