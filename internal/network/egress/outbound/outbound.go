// Package outbound resolves the names that policies allow, and dials exactly the addresses
// that it checked. A name's addresses are all public, or the name is refused: whoever owns
// a name, or answers for it, must not lead a sandbox into the host's own networks. Only
// the operator can say otherwise, name by name.
package outbound

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/address"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Resolver answers what addresses a name has. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Host is the operator's word on where a name is.
type Host struct {
	Name string `json:"name"` // a host, or "*." and one for all below it
	// Address is dialled in place of what the name resolves to; invalid: it is resolved.
	// Port 0 is the port that was asked for.
	Address netip.AddrPort `json:"address,omitzero"`
	// Port is the only one that Address is for; 0: it is for all.
	Port int `json:"port,omitempty"`
	// Private lets the name resolve to private addresses, too.
	Private bool `json:"private,omitempty"`
	// CAPEM is what its certificate may come from, in place of what this machine trusts;
	// nil: that. It counts where the gateway ends TLS.
	CAPEM []byte `json:"ca_pem,omitempty"`
}

// NewHost checks and makes a Host. at is "ADDRESS" or "ADDRESS:PORT", or ""; ca is PEM, or
// nil.
func NewHost(name, at string, port int, private bool, ca []byte) (Host, error) {
	h := Host{Name: name, Port: port, Private: private, CAPEM: ca}
	if ca != nil && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return Host{}, fault.Invalid(".ca_file has no certificate in PEM")
	}
	bare := strings.TrimPrefix(name, "*.")
	if bare == "" || strings.ToLower(bare) != bare || strings.ContainsAny(bare, "*:/ ") || strings.HasSuffix(bare, ".") {
		return Host{}, fault.Invalid(".name is %q; it is a host's name in lower case, or *. and one", name)
	}
	if port < 0 || port > 65535 {
		return Host{}, fault.Invalid(".port is %d; it is a number from 1 to 65535", port)
	}
	if at == "" {
		if !private && ca == nil || port != 0 {
			return Host{}, fault.Invalid(" has neither an address nor private: true nor ca_file, so it says nothing")
		}
		return h, nil
	}
	ap, err := netip.ParseAddrPort(at)
	if a, alone := netip.ParseAddr(at); alone == nil {
		ap, err = netip.AddrPortFrom(a, 0), nil
	}
	if err != nil || ap.Addr().Zone() != "" {
		return Host{}, fault.Invalid(".address is %q; it is an address, or one with a port", at)
	}
	h.Address = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	switch class := address.ClassOf(ap.Addr()); class {
	case address.Public, address.Private, address.Loopback, address.Test:
		return h, nil
	case address.Metadata, address.LinkLocal, address.Reserved:
		return Host{}, fault.Invalid(".address is %s, which is a %s address: no sandbox is led there", at, class)
	}
	return Host{}, fault.Invalid(".address is of no known class")
}

// coversName tells whether it is about a canonical name on a port.
func (h Host) coversName(name string, port int) bool {
	if h.Port != 0 && h.Port != port {
		return false
	}
	if below, ok := strings.CutPrefix(h.Name, "*"); ok {
		return strings.HasSuffix(name, below)
	}
	return name == h.Name
}

// Dialer resolves, checks and dials. It is safe for concurrent use.
type Dialer struct {
	hosts    []Host
	resolver Resolver
	connect  func(ctx context.Context, network, address string) (net.Conn, error) // nil: this process does
}

// NewDialer makes a Dialer. nil is this host's own resolver, without its search domains.
func NewDialer(hosts []Host, resolver Resolver) *Dialer {
	if resolver == nil {
		resolver = &net.Resolver{PreferGo: true}
	}
	return &Dialer{hosts: hosts, resolver: resolver}
}

// Through has another process connect, which is told an IP address and a port. It is
// called before the Dialer is used.
func (d *Dialer) Through(connect func(ctx context.Context, network, address string) (net.Conn, error)) *Dialer {
	d.connect = connect
	return d
}

// Times and numbers of one connection.
const (
	resolveTime  = 10 * time.Second
	dialTime     = 5 * time.Second // to one address
	maxAddresses = 4               // that are tried
)

// Target is where a name leads, checked. It holds for one connection.
type Target struct {
	Addresses []netip.AddrPort
	Pinned    bool // by the operator's configuration; nobody was asked
	// Roots vouch for the name, where the operator says so; nil: this machine's do.
	Roots *x509.CertPool
}

// Addrs are its addresses without ports.
func (t Target) Addrs() []netip.Addr {
	var all []netip.Addr
	for _, a := range t.Addresses {
		all = append(all, a.Addr())
	}
	return all
}

// Asker is asked before anybody hears of a name; after an error nobody does.
type Asker func(ctx context.Context) error

// Resolve says where a canonical name leads. Unless the operator has said where, a name server
// hears of it, once asking has allowed that. An address that it may not have is
// fault.ErrForbidden, and one is enough; a name without addresses is fault.ErrUnavailable.
// Both sentences are for the sandbox, and tell it nothing of other hosts.
func (d *Dialer) Resolve(ctx context.Context, name string, port int, asking Asker) (Target, error) {
	private := false
	var t Target
	for _, h := range d.hosts {
		if !h.coversName(name, port) {
			continue
		}
		t.trustEntry(h)
		if h.Address.IsValid() {
			at := h.Address
			if at.Port() == 0 {
				at = netip.AddrPortFrom(at.Addr(), uint16(port))
			}
			t.Addresses, t.Pinned = []netip.AddrPort{at}, true
			return t, nil
		}
		private = private || h.Private
	}
	if err := asking(ctx); err != nil {
		return Target{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	found, err := d.resolver.LookupNetIP(ctx, "ip", name+".") // without the dot, search domains would be tried
	if err != nil || len(found) == 0 {
		return Target{}, fault.Wrap(fault.ErrUnavailable, err, "%s does not resolve on the host", name)
	}
	for _, a := range found {
		if err := mayHave(name, a, private); err != nil {
			return Target{}, err
		}
		if at := netip.AddrPortFrom(a.Unmap(), uint16(port)); !slices.Contains(t.Addresses, at) {
			t.Addresses = append(t.Addresses, at)
		}
	}
	return t, nil
}

// trustEntry takes what an entry says of who vouches for the name.
func (t *Target) trustEntry(h Host) {
	if h.CAPEM == nil {
		return
	}
	if t.Roots == nil {
		t.Roots = x509.NewCertPool()
	}
	t.Roots.AppendCertsFromPEM(h.CAPEM) // it was checked when it was read
}

func mayHave(name string, a netip.Addr, private bool) error {
	if a.Zone() != "" {
		return fault.New(fault.ErrForbidden, "%s resolves to an address of one link alone, and only public addresses are connected to", name)
	}
	switch class := address.ClassOf(a); class {
	case address.Public:
		if address.Own(a) {
			return fault.New(fault.ErrForbidden, "%s resolves to an address of this host's own, and only public addresses of others are connected to", name)
		}
		return nil
	case address.Private:
		if private {
			return nil
		}
		return refusedClass(name, class)
	case address.Loopback, address.LinkLocal, address.Metadata, address.Test, address.Reserved:
		return refusedClass(name, class)
	}
	return refusedClass(name, "unknown")
}

func refusedClass(name string, class address.Class) error {
	return fault.New(fault.ErrForbidden, "%s resolves to a %s address, and only public addresses are connected to", name, class)
}

// Dial connects to one of a target's addresses. The check that it is one of them is made
// again on the address that the kernel is about to connect to.
func (d *Dialer) Dial(ctx context.Context, t Target) (net.Conn, error) {
	connect := d.connect
	if connect == nil {
		connect = dialDirectly(t)
	}
	var failed []error
	for _, at := range t.Addresses[:min(len(t.Addresses), maxAddresses)] {
		conn, err := dialWithin(ctx, connect, at)
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, fault.Wrap(fault.ErrUnavailable, errors.Join(failed...), "none of its addresses can be connected to")
}

// dialWithin bounds the attempt at one address.
func dialWithin(ctx context.Context, connect func(context.Context, string, string) (net.Conn, error), at netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return connect(ctx, "tcp", net.JoinHostPort(at.Addr().String(), strconv.Itoa(int(at.Port()))))
}

// dialDirectly connects to a target from this process.
func dialDirectly(t Target) func(context.Context, string, string) (net.Conn, error) {
	nd := &net.Dialer{
		ControlContext: func(_ context.Context, _, at string, _ syscall.RawConn) error {
			if ap, err := netip.ParseAddrPort(at); err != nil || !slices.Contains(t.Addresses, netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())) {
				return fault.New(fault.ErrForbidden, "an address that was not checked")
			}
			return nil
		},
	}
	return nd.DialContext
}
