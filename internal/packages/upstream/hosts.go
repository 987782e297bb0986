package upstream

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/address"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Resolver answers what addresses a name has. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// hosts are the only ones that a client dials. Keys are "host:port".
type hosts struct {
	resolver Resolver
	scheme   string // of the index: https, or http where the operator said so
	index    string // the index's own host:port
	// pinned is where the operator said that the index's host is; invalid if
	// its name is to be resolved.
	pinned netip.AddrPort

	mu     sync.Mutex
	learnt map[string]bool
	// own are the classes that the index's host had when it was resolved first; nil: it was not
	// yet. The owner of the name, or a server that answers for it, can't lead us to another class
	// later.
	own map[address.Class]bool
}

// hostPort gives the key of a URL.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

func (h *hosts) isLearnt(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.learnt[key]
}

// permits checks a URL before it is asked for: scheme, host, no credentials.
func (h *hosts) permits(u *url.URL) error {
	key := hostPort(u)
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || h.scheme != "http"):
		return fault.Invalid("the upstream points to a URL that is not https")
	case u.User != nil || u.Opaque != "":
		return fault.Invalid("the upstream points to a URL with credentials or without a host")
	case key != h.index && !h.isLearnt(key):
		return fault.Invalid("the upstream points to a host that is neither it nor one of its file hosts")
	}
	return nil
}

// addresses resolves a permitted host and refuses all of its addresses if one
// is of a class that it may not have. The caller dials exactly these.
func (h *hosts) addresses(ctx context.Context, key string) ([]netip.Addr, error) {
	host, _, err := net.SplitHostPort(key)
	if err != nil {
		return nil, fault.Invalid("an address without a port")
	}
	addrs, err := h.resolveHost(ctx, host)
	if err != nil {
		return nil, err
	}
	if key == h.index {
		return addrs, h.pinAddresses(host, addrs)
	}
	for _, a := range addrs {
		if !h.mayHaveAddress(ctx, key, a) {
			return nil, fault.Invalid("a host of the upstream has a %s address, which it may not have", address.ClassOf(a))
		}
	}
	return addrs, nil
}

// pinAddresses checks the addresses of the index's own host, which is the operator's
// choice: it may be anywhere but at the machine's metadata service, unless that
// address itself was typed. The classes that it has first are its for ever.
func (h *hosts) pinAddresses(host string, addrs []netip.Addr) error {
	_, err := netip.ParseAddr(host)
	typed := err == nil
	h.mu.Lock()
	defer h.mu.Unlock()
	own := map[address.Class]bool{}
	for _, a := range addrs {
		switch class := address.ClassOf(a); class {
		case address.Public, address.Private, address.Loopback, address.Test:
			own[class] = true
		case address.LinkLocal, address.Metadata, address.Reserved:
			if !typed {
				return fault.Invalid("a host of the upstream has a %s address, which it may not have", class)
			}
			own[class] = true
		}
	}
	for class := range own {
		if h.own != nil && !h.own[class] {
			return fault.Invalid("the upstream's host has a %s address now, and had none of that class at the gateway's start; if that is meant, start the daemon anew", class)
		}
	}
	if h.own == nil {
		h.own = own
	}
	return nil
}

// ownClasses are those of the index's host.
func (h *hosts) ownClasses(ctx context.Context) map[address.Class]bool {
	h.mu.Lock()
	own := h.own
	h.mu.Unlock()
	if own != nil {
		return own
	}
	if _, err := h.addresses(ctx, h.index); err != nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.own
}

func (h *hosts) resolveHost(ctx context.Context, host string) ([]netip.Addr, error) {
	if index, _, _ := net.SplitHostPort(h.index); h.pinned.IsValid() && host == index {
		return []netip.Addr{h.pinned.Addr()}, nil
	}
	return h.lookup(ctx, host)
}

// lookup finds the addresses of a host, or reads one.
func (h *hosts) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	addrs, err := h.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "a host of the upstream does not resolve")
	}
	return addrs, nil
}

// mayHaveAddress tells whether a host may have an address: the index's own has the
// classes that it had first; a learnt one is public, or of one of these.
func (h *hosts) mayHaveAddress(ctx context.Context, key string, a netip.Addr) bool {
	class := address.ClassOf(a)
	if key == h.index {
		return h.ownClasses(ctx)[class]
	}
	switch class {
	case address.Public:
		return true
	case address.Private, address.Loopback, address.Test:
		return h.ownClasses(ctx)[class]
	case address.LinkLocal, address.Metadata, address.Reserved:
	}
	return false
}

// learnHost adds a file host, "host" or "host:port", after checking its addresses.
func (h *hosts) learnHost(ctx context.Context, host string, resolve bool) error {
	u, err := url.Parse(h.scheme + "://" + host + "/")
	if err != nil || u.Host != host || u.Hostname() == "" || u.User != nil {
		return fault.Invalid("a file host that is not a host name")
	}
	key := hostPort(u)
	if key == h.index {
		return nil
	}
	if resolve {
		if _, err := h.addresses(ctx, key); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.learnt[key] = true
	return nil
}
