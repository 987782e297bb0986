package upstream

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
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
	addrs, err := h.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if !h.mayBe(ctx, key, a) {
			return nil, fault.Invalid("a host of the upstream has a %s address, which it may not have", ClassOf(a))
		}
	}
	return addrs, nil
}

func (h *hosts) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if index, _, _ := net.SplitHostPort(h.index); h.pinned.IsValid() && host == index {
		return []netip.Addr{h.pinned.Addr()}, nil
	}
	addrs, err := h.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "a host of the upstream does not resolve")
	}
	return addrs, nil
}

// mayBe: the index's own host is the operator's choice and may be anywhere but
// at the machine's metadata service, unless that address itself was typed. A
// learnt host is public, or of a class that the index's host has.
func (h *hosts) mayBe(ctx context.Context, key string, a netip.Addr) bool {
	class := ClassOf(a)
	if key == h.index {
		host, _, _ := net.SplitHostPort(key)
		_, err := netip.ParseAddr(host)
		return err == nil || class == Public || class == Private || class == Loopback || class == Test
	}
	switch class {
	case Public:
		return true
	case Private, Loopback, Test:
		host, _, _ := net.SplitHostPort(h.index)
		own, err := h.resolve(ctx, host)
		if err != nil {
			return false
		}
		for _, o := range own {
			if ClassOf(o) == class {
				return true
			}
		}
	case LinkLocal, Metadata, Reserved:
	}
	return false
}

// learn adds a file host, "host" or "host:port", after checking its addresses.
func (h *hosts) learn(ctx context.Context, host string, resolve bool) error {
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
