package policy

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/address"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Narrowing is what a client gives up of the network for its own sandbox. It
// only ever takes away: what the policy does not allow stays closed, whatever
// Allow says. The zero Narrowing takes nothing away.
//
// Within a narrowing Allow beats Deny, and what neither has is open. Registries
// are no part of it: they are answered by the gateway, which is not the
// internet, and packages are the policy's matter.
//
// A sandbox has no routes, so names decide. An address in Deny closes the names
// that resolve to it: whoever dials asks Address about each. An address in Allow
// could open nothing and is refused by NewNarrowing.
type Narrowing struct {
	Allow []string `json:"allow_out,omitempty"` // names, *.names, or Everything
	Deny  []string `json:"deny_out,omitempty"`  // addresses and ranges
}

// Everything is the range of all addresses.
const Everything = "0.0.0.0/0"

// everything6 is the same of the other family.
const everything6 = "::/0"

// maxNarrowing bounds each list.
const maxNarrowing = 500

// NewNarrowing checks and makes a narrowing. internet false is Everything in
// deny; nil and true say nothing. The error is fault.ErrInvalid with a sentence
// for the client.
func NewNarrowing(allow, deny []string, internet *bool) (Narrowing, error) {
	if len(allow) > maxNarrowing || len(deny) > maxNarrowing {
		return Narrowing{}, fault.Invalid("a list of the network has more than %d entries", maxNarrowing)
	}
	n := Narrowing{Allow: slices.Clone(allow), Deny: slices.Clone(deny)}
	if internet != nil && !*internet && !n.closed() {
		n.Deny = append(n.Deny, Everything)
	}
	if internet != nil && !*internet && slices.Contains(n.Allow, Everything) {
		return Narrowing{}, fault.Invalid("allow_internet_access is false, and allowOut has %q: one of them is a slip", Everything)
	}
	for _, list := range [][]string{n.Allow, n.Deny} {
		for i := range list {
			list[i] = strings.ToLower(list[i])
		}
	}
	for _, entry := range n.Deny {
		if _, ok := parsePrefix(entry); !ok {
			return Narrowing{}, fault.Invalid("denyOut: %q is neither an address nor a range; names can only be in allowOut", plainASCII(entry, 60))
		}
	}
	return n, n.checkAllow()
}

func (n Narrowing) checkAllow() error {
	for _, entry := range n.Allow {
		if entry == Everything || entry == everything6 {
			continue
		}
		if _, ok := parsePrefix(entry); ok {
			return fault.Invalid("allowOut: %q can't be given: addresses have no route in a sandbox, so name the host", plainASCII(entry, 60))
		}
		pattern, wrong := parseNetworkPattern(entry)
		switch {
		case wrong != "":
			return fault.Invalid("allowOut: %q %s", plainASCII(entry, 60), wrong)
		case pattern.Port != 0:
			return fault.Invalid("allowOut: %q has a port; it takes names alone", plainASCII(entry, 60))
		case !n.closed():
			return fault.Invalid("allowOut has the name %q, which means something only where all else is closed; add %q to denyOut", plainASCII(entry, 60), Everything)
		}
	}
	return nil
}

// parsePrefix reads an address or a range. An address is a range of one.
func parsePrefix(s string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, false
	}
	return p.Masked(), true
}

// closed reports whether everything is denied that Allow does not have.
func (n Narrowing) closed() bool { return slices.ContainsFunc(n.Deny, isEverything) }

// isEverything tells whether a range is Everything, whichever of its addresses it is written with.
func isEverything(entry string) bool {
	p, ok := parsePrefix(entry)
	return ok && p.Bits() == 0 && p.Addr().Is4()
}

// closes tells whether a denied range has an address, or is one that leads to it.
func closes(p netip.Prefix, a netip.Addr) bool {
	return p.Contains(a) || p.IsSingleIP() && slices.Contains(address.Carried(p.Addr()), a)
}

// IsZero reports whether it takes nothing away.
func (n Narrowing) IsZero() bool { return len(n.Allow) == 0 && len(n.Deny) == 0 }

// Equal reports whether two say the same in the same order.
func (n Narrowing) Equal(other Narrowing) bool {
	return slices.Equal(n.Allow, other.Allow) && slices.Equal(n.Deny, other.Deny)
}

// Name reports whether a canonical name may still be asked for, and if not why.
// Where it may, its addresses are still to be judged.
func (n Narrowing) Name(host string) (open bool, reason string) {
	if !n.closed() || n.allows(host) {
		return true, ""
	}
	return false, "the sandbox's own client closed the network (denyOut " + Everything + "), and its allowOut does not have " + plainASCII(host, 253)
}

// Address reports whether an address to which a name resolved may be dialled,
// and if not why.
func (n Narrowing) Address(host string, addr netip.Addr) (open bool, reason string) {
	if n.allows(host) {
		return true, ""
	}
	leads := append(address.Carried(addr), addr.Unmap().WithZone(""))
	for _, entry := range n.Deny {
		if p, ok := parsePrefix(entry); !ok || isEverything(entry) || slices.ContainsFunc(leads, func(a netip.Addr) bool { return closes(p, a) }) {
			return false, "the sandbox's own client closed " + plainASCII(entry, 60) + ", which has " + plainASCII(host, 253) + "'s address"
		}
	}
	return true, ""
}

func (n Narrowing) allows(host string) bool {
	for _, entry := range n.Allow {
		if entry == Everything || entry == everything6 {
			return true
		}
		if p, wrong := parseNetworkPattern(entry); wrong == "" && p.matchesHost(host) {
			return true
		}
	}
	return false
}

// matchesHost compares with a canonical name.
func (n NetworkPattern) matchesHost(host string) bool {
	if n.Wildcard {
		return strings.HasSuffix(host, "."+n.Host)
	}
	return host == n.Host
}
