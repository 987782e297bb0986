package dialer

import (
	"errors"
	"net/netip"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWhatIsDialled: the internet, what the operator typed, what configured names had, and
// for an upstream's file hosts its class; nothing else, whatever a name resolves to.
func TestWhatIsDialled(t *testing.T) {
	t.Parallel()
	at := netip.MustParseAddrPort
	for name, c := range map[string]struct {
		allowed  Allowed
		resolved map[string]string
		yes, no  []string
	}{
		"nothing configured": {
			resolved: map[string]string{"evil.example": "10.0.0.5"},
			yes:      []string{"8.8.8.8:443", "[2606:4700::1]:53"},
			no: []string{
				"10.0.0.5:443", "127.0.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "0.0.0.0:80", "169.254.169.254:80", "192.168.1.1:22",
				"100.100.100.200:80", "[fe80::1]:80", "[fd00:ec2::254]:80", "224.0.0.1:80", "8.8.8.8:0", "[64:ff9b::a00:5]:80",
			},
		},
		"a pin": {
			allowed: Allowed{Pins: []Pin{{At: at("127.0.0.1:8080")}, {At: at("10.1.1.1:0")}}},
			yes:     []string{"127.0.0.1:8080", "[::ffff:127.0.0.1]:8080", "10.1.1.1:1", "10.1.1.1:65535"},
			no:      []string{"127.0.0.1:8081", "127.0.0.2:8080", "10.1.1.2:1"},
		},
		"an upstream": {
			allowed:  Allowed{Names: []Name{{Name: "packages.example", Others: true}}},
			resolved: map[string]string{"Packages.Example.": "10.0.0.5"},
			yes:      []string{"10.0.0.5:443", "10.9.9.9:443"},
			no:       []string{"127.0.0.1:443", "169.254.169.254:80"},
		},
		"an upstream that nobody asked for yet": {
			allowed: Allowed{Names: []Name{{Name: "packages.example", Others: true}}},
			no:      []string{"10.0.0.5:443"},
		},
		"an upstream that leads to credentials": {
			allowed:  Allowed{Names: []Name{{Name: "packages.example", Others: true}}},
			resolved: map[string]string{"packages.example": "169.254.169.254"},
			no:       []string{"169.254.169.254:80"},
		},
		"a proxy": {
			allowed:  Allowed{Names: []Name{{Name: "proxy.example"}}},
			resolved: map[string]string{"proxy.example": "127.0.0.1"},
			yes:      []string{"127.0.0.1:3128"},
			no:       []string{"127.0.0.2:3128", "10.0.0.1:3128"},
		},
		"private names": {
			allowed:  Allowed{Names: []Name{{Name: "*.corp.example", Private: true}}},
			resolved: map[string]string{"a.corp.example": "10.0.0.7", "b.corp.example": "127.0.0.1", "corp.example": "10.0.0.8", "xcorp.example": "10.0.0.9"},
			yes:      []string{"10.0.0.7:443"},
			no:       []string{"127.0.0.1:443", "10.0.0.8:443", "10.0.0.9:443"},
		},
	} {
		g := newGuard(c.allowed)
		for host, address := range c.resolved {
			g.resolved(host, []netip.Addr{netip.MustParseAddr(address)})
		}
		for _, a := range c.yes {
			if err := g.permits(at(a)); err != nil {
				t.Errorf("%s: %s: %v", name, a, err)
			}
		}
		for _, a := range c.no {
			if g.permits(at(a)) == nil {
				t.Errorf("%s: %s is dialled", name, a)
			}
		}
	}
}

// TestWhatIsGrantedIsBounded: who asks for many names of a kind makes the dialer forget, and
// not grow.
func TestWhatIsGrantedIsBounded(t *testing.T) {
	t.Parallel()
	g := newGuard(Allowed{Names: []Name{{Name: "*.corp.example", Private: true}}})
	a := netip.MustParseAddr("10.0.0.0")
	for range 3 * maxGranted {
		a = a.Next()
		g.resolved("x.corp.example", []netip.Addr{a})
	}
	if len(g.granted) > maxGranted || g.permits(netip.AddrPortFrom(a, 443)) != nil {
		t.Errorf("%d are granted", len(g.granted))
	}
}

// TestAPublicAddressOfThisHost is dialled only where the configuration leads to this host.
func TestAPublicAddressOfThisHost(t *testing.T) {
	runtime.LockOSThread() // for good: the thread ends with the test, in a network of its own
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort("93.184.215.14:80")
	named, pinned := newGuard(Allowed{Names: []Name{{Name: "here.example"}, {Name: "private.example", Private: true}}}), newGuard(Allowed{Pins: []Pin{{At: at}}})
	if err := named.permits(at); err != nil {
		t.Errorf("the control, another host's: %v", err)
	}
	have(t, at.Addr())
	if err := named.permits(at); err == nil {
		t.Error("it may be dialled")
	}
	if named.resolved("private.example", []netip.Addr{at.Addr()}); named.permits(at) == nil {
		t.Error("it may be dialled for a name that may have private addresses")
	}
	if named.resolved("here.example", []netip.Addr{at.Addr()}); named.permits(at) != nil {
		t.Error("a name of the configuration does not lead there")
	}
	if err := pinned.permits(at); err != nil {
		t.Error(err)
	}
}

// have has the loopback interface have an address.
func have(t *testing.T, a netip.Addr) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	r, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	ip := a.As4()
	if err := errors.Join(r.SetInet4Addr(ip[:]), unix.IoctlIfreq(fd, unix.SIOCSIFADDR, r)); err != nil {
		t.Fatal(err)
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_LOOPBACK | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
		t.Fatal(err)
	}
}
