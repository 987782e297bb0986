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

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/lru"
)

const (
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

	mu sync.Mutex // guards by
	by map[string]*Authority
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
	return &Hosts{dir: dir, leaves: lru.New[leafKey, keptLeaf](keptLeaves), by: map[string]*Authority{}}, nil
}

// CAPEM is the root's certificate of a set of hosts: names, and "*." with one for all
// below it. It is made when it is asked for first.
func (h *Hosts) CAPEM(ctx context.Context, hosts []string) ([]byte, error) {
	_, a, names, err := h.of(hosts)
	if err != nil {
		return nil, err
	}
	g, err := a.ensure(ctx, names)
	if err != nil {
		return nil, err
	}
	return encodeCertificate(g.root), nil
}

// Leaf issues one for a name, for a day, under the authority of a set of hosts; the name
// must be one that they mean.
func (h *Hosts) Leaf(ctx context.Context, hosts []string, name string) (Leaf, error) {
	set, a, names, err := h.of(hosts)
	if err != nil {
		return Leaf{}, err
	}
	one, err := parseHosts([]string{name})
	if err != nil {
		return Leaf{}, err
	}
	if !slices.ContainsFunc(hosts, func(host string) bool { return means(host, name) }) {
		return Leaf{}, fault.New(fault.ErrForbidden, "%s is none of the hosts that this authority is for", name)
	}
	key, now := leafKey{set, name}, time.Now()
	if kept, ok := h.leaves.Get(key); ok && kept.ends.Sub(now) > leastLeft {
		return kept.leaf, nil
	}
	g, err := a.ensure(ctx, names)
	if err != nil {
		return Leaf{}, err
	}
	leaf, err := g.issue(one, hostLeafLifetime, now)
	if err == nil {
		h.leaves.Put(key, keptLeaf{leaf, now.Add(hostLeafLifetime)}, 1)
	}
	return leaf, err
}

// of is the authority of a set of hosts, with its name and what it is constrained to.
func (h *Hosts) of(hosts []string) (set string, a *Authority, names subjects, err error) {
	sorted := slices.Compact(slices.Sorted(slices.Values(hosts)))
	var bare []string
	for _, host := range sorted {
		bare = append(bare, strings.TrimPrefix(host, "*."))
	}
	if names, err = parseHosts(bare); err != nil {
		return "", nil, names, err
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
	set = hex.EncodeToString(sum[:16])
	h.mu.Lock()
	defer h.mu.Unlock()
	if a = h.by[set]; a == nil {
		if a, err = Open(filepath.Join(h.dir, set)); err != nil {
			return "", nil, names, err
		}
		h.by[set] = a
	}
	return set, a, names, nil
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

// means tells whether a host, which may begin with "*.", means a name.
func means(host, name string) bool {
	if below, ok := strings.CutPrefix(host, "*"); ok {
		return strings.HasSuffix(name, below)
	}
	return host == name
}
