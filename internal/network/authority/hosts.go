package authority

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/lru"
)

const (
	// keptSets bounds the authorities in memory; those in use come on top.
	keptSets = 256
	// markEvery is how often the use of a set is noted on its folder.
	markEvery = 24 * time.Hour
	// keptLeaves bounds the leaves in memory.
	keptLeaves = 1_024
	// A kept leaf is good for this long at least.
	leastLeft = hostLeafLifetime / 2
)

// Hosts are the authorities under which the gateway ends TLS: one for each set of hosts
// that a policy has requests judged of, good for these and no others. Sandboxes with such
// a policy trust it, and nobody else does. Safe for concurrent use; the folder belongs to
// one process at a time, which the daemon's lock sees to.
type Hosts struct {
	dir    string
	leaves *lru.Cache[leafKey, keptLeaf]

	mu   sync.Mutex // guards all below
	by   map[string]*heldAuthority
	uses uint64
}

// heldAuthority is a set's authority in memory. There is never a second one of a set in use, for
// each takes its folder to be its own.
type heldAuthority struct {
	*Authority

	users  int       // who have it now
	last   uint64    // use of all
	marked time.Time // when the folder was
}

type leafKey struct{ set, name string }

type keptLeaf struct {
	leaf Leaf
	ends time.Time
}

// OpenHosts takes a folder, which is made (0700) if missing. Each set of hosts has one in
// it, which is read when it is needed.
func OpenHosts(dir string) (*Hosts, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the folder %s of the certificate authorities cannot be made", dir)
	}
	return &Hosts{dir: dir, leaves: lru.New[leafKey, keptLeaf](keptLeaves), by: map[string]*heldAuthority{}}, nil
}

// CAPEM is the root's certificate of a set of hosts: names, and "*." with one for all
// below it. It is made when it is asked for first.
func (h *Hosts) CAPEM(ctx context.Context, hosts []string) ([]byte, error) {
	set, names, err := setOfHosts(hosts)
	if err != nil {
		return nil, err
	}
	a, release, err := h.takeAuthority(set)
	if err != nil {
		return nil, err
	}
	defer release()
	g, err := a.ensure(ctx, names)
	if err != nil {
		return nil, err
	}
	return encodeCertificate(g.root), nil
}

// Leaf issues one for a name, for a day, under the authority of a set of hosts; the name
// must be one that they mean.
func (h *Hosts) Leaf(ctx context.Context, hosts []string, name string) (Leaf, error) {
	set, names, err := setOfHosts(hosts)
	if err != nil {
		return Leaf{}, err
	}
	one, err := parseHosts([]string{name})
	if err != nil {
		return Leaf{}, err
	}
	if !slices.ContainsFunc(hosts, func(host string) bool { return meansHost(host, name) }) {
		return Leaf{}, fault.New(fault.ErrForbidden, "%s is none of the hosts that this authority is for", name)
	}
	a, release, err := h.takeAuthority(set)
	if err != nil {
		return Leaf{}, err
	}
	defer release()
	key, now := leafKey{set, name}, time.Now()
	if kept, ok := h.leaves.Get(key); ok && kept.ends.Sub(now) > leastLeft {
		return kept.leaf, nil
	}
	g, err := a.ensure(ctx, names)
	if err != nil {
		return Leaf{}, err
	}
	leaf, err := g.issueLeaf(one, hostLeafLifetime, now)
	if err == nil {
		h.leaves.Put(key, keptLeaf{leaf, now.Add(hostLeafLifetime)}, 1)
	}
	return leaf, err
}

// setOfHosts is the name of a set of hosts, and what its authority is constrained to.
func setOfHosts(hosts []string) (set string, names subjects, err error) {
	sorted := slices.Compact(slices.Sorted(slices.Values(hosts)))
	var bare []string
	for _, host := range sorted {
		bare = append(bare, strings.TrimPrefix(host, "*."))
	}
	if names, err = parseHosts(bare); err != nil {
		return "", names, err
	}
	names.names, names.of = nil, "policy"
	for _, host := range sorted {
		name, star := strings.CutPrefix(host, "*.")
		switch {
		case !star:
			names.names = append(names.names, name)
		case slices.Contains(sorted, name):
			names.above = append(names.above, name)
		default:
			names.below = append(names.below, name)
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(sorted, "\n")))
	return hex.EncodeToString(sum[:16]), names, nil
}

// takeAuthority gives the authority of a set, until it is released.
func (h *Hosts) takeAuthority(set string) (a *Authority, release func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.by[set]
	if k == nil {
		k = &heldAuthority{}
		if k.Authority, err = Open(filepath.Join(h.dir, set)); err != nil {
			return nil, nil, err
		}
		h.by[set] = k
	}
	if now := time.Now(); now.Sub(k.marked) > markEvery {
		if err := os.Chtimes(filepath.Join(h.dir, set), now, now); err != nil {
			return nil, nil, fault.Wrap(fault.ErrUnavailable, err, "the use of a certificate authority can't be noted")
		}
		k.marked = now
	}
	h.uses++
	k.users, k.last = k.users+1, h.uses
	h.shedUnused()
	return k.Authority, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		k.users--
	}, nil
}

// shedUnused forgets authorities past the bound that nobody has, the least recently used first;
// mu is held. They are read again when they are needed.
func (h *Hosts) shedUnused() {
	for len(h.by) > keptSets {
		oldest := ""
		for set, k := range h.by {
			if k.users == 0 && (oldest == "" || k.last < h.by[oldest].last) {
				oldest = set
			}
		}
		if oldest == "" {
			return
		}
		delete(h.by, oldest)
	}
}

// ensure gives the generation that covers the names, or makes one.
func (a *Authority) ensure(ctx context.Context, names subjects) (*generation, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	g, err := a.covering(names)
	if err == nil {
		a.current = g
	}
	return g, err
}

// meansHost tells whether a host, which may begin with "*.", means a name.
func meansHost(host, name string) bool {
	if below, ok := strings.CutPrefix(host, "*"); ok {
		return strings.HasSuffix(name, below)
	}
	return host == name
}
