package dialer

import (
	"net/netip"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/address"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Pin is an address that the operator typed. Port 0 is every port.
type Pin struct {
	At netip.AddrPort `json:"at"`
	// Others tells that other hosts may have addresses of this class: the file hosts that
	// an upstream's pages name.
	Others bool `json:"others,omitempty"`
}

// Name is a host of the operator's configuration, which may have other than public
// addresses.
type Name struct {
	Name string `json:"name"` // in lower case, or "*." and one for all below it
	// Private is for private addresses alone: not for this machine's own.
	Private bool `json:"private,omitempty"`
	Others  bool `json:"others,omitempty"` // as of a Pin
}

// Allowed is where the dialer connects to beside the internet.
type Allowed struct {
	Pins  []Pin  `json:"pins,omitempty"`
	Names []Name `json:"names,omitempty"`
}

// maxGranted bounds what is remembered. Beyond it all is forgotten: what is dialled was
// resolved right before.
const maxGranted = 4096

// guard decides what is dialled. Safe for concurrent use.
type guard struct {
	allowed Allowed

	mu      sync.Mutex // guards the rest
	granted map[netip.Addr]bool
	others  map[address.Class]bool
}

func newGuard(a Allowed) *guard {
	g := &guard{allowed: a, granted: map[netip.Addr]bool{}, others: map[address.Class]bool{}}
	for _, p := range a.Pins {
		if class := address.ClassOf(p.At.Addr()); p.Others && ordinary(class) {
			g.others[class] = true
		}
	}
	return g
}

// ordinary are the classes, beside the public one, where services are. At the others are
// machines' credentials, neighbours of one link, and nobody.
func ordinary(class address.Class) bool {
	return class == address.Private || class == address.Loopback || class == address.Test
}

// resolved takes note of what a name has.
func (g *guard) resolved(name string, addresses []netip.Addr) {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.allowed.Names {
		if !n.coversName(name) {
			continue
		}
		for _, a := range addresses {
			a = a.Unmap()
			class := classOf(a)
			if !ordinary(class) || n.Private && class != address.Private {
				continue
			}
			if len(g.granted) >= maxGranted {
				clear(g.granted)
			}
			g.granted[a] = true
			if n.Others {
				g.others[class] = true
			}
		}
	}
}

// classOf is an address's class. A public one of this machine's own leads to this machine.
func classOf(a netip.Addr) address.Class {
	class := address.ClassOf(a)
	if class == address.Public && address.Own(a) {
		return address.Loopback
	}
	return class
}

func (n Name) coversName(name string) bool {
	if below, ok := strings.CutPrefix(n.Name, "*"); ok {
		return strings.HasSuffix(name, below)
	}
	return name == n.Name
}

// permits refuses what is neither public nor the operator's.
func (g *guard) permits(at netip.AddrPort) error {
	if at.Addr().Zone() != "" || at.Port() == 0 {
		return fault.New(fault.ErrForbidden, "%s is no address that can be dialled", at)
	}
	a := at.Addr().Unmap()
	class := classOf(a)
	if class == address.Public {
		return nil
	}
	for _, p := range g.allowed.Pins {
		if p.At.Addr().Unmap() == a && (p.At.Port() == 0 || p.At.Port() == at.Port()) {
			return nil
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if ordinary(class) && (g.granted[a] || g.others[class]) {
		return nil
	}
	return fault.New(fault.ErrForbidden, "%s is a %s address, and nothing in the configuration leads there", a, class)
}
