package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// maxCached bounds the questions whose answers are kept in memory.
const maxCached = 4_096

// grantCache keeps what the store told about a project to a run, most often
// that there is nothing. Safe for concurrent use.
type grantCache struct {
	store Store

	mu    sync.Mutex // guards what follows; never held over I/O
	known map[grantKey][]grant
	// forgotten counts, so that what was read before a change is not kept after it.
	forgotten uint64
}

type grantKey struct {
	project            pkgref.Ref // without version
	run, owner, policy string
}

// grant is an answer and when it ends; zero: never.
type grant struct {
	policy.Approval
	ends time.Time
}

func newGrantCache(store Store) *grantCache {
	return &grantCache{store: store, known: map[grantKey][]grant{}}
}

// forgetEntries drops what entries may have changed.
func (c *grantCache) forgetEntries(entries []Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range entries {
		if e.State == Pending {
			continue
		}
		c.forgotten++
		project := e.Project()
		for key := range c.known {
			if key.project == project {
				delete(c.known, key)
			}
		}
	}
}

// forgetAll drops everything.
func (c *grantCache) forgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.known)
	c.forgotten++
}

// answers reads through the cache what holds for the runs of an asker.
func (c *grantCache) answers(ctx context.Context, project pkgref.Ref, asker Asker) ([]grant, error) {
	key := grantKey{project, asker.Run, asker.Owner(), asker.Policy}
	c.mu.Lock()
	known, ok := c.known[key]
	before := c.forgotten
	c.mu.Unlock()
	if ok {
		return known, nil
	}
	entries, err := c.store.Answers(ctx, key.project, key.run, key.policy)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.answers(asker) {
			known = append(known, grantOf(e))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forgotten == before {
		if len(c.known) >= maxCached {
			clear(c.known)
		}
		c.known[key] = known
	}
	return known, nil
}

func grantOf(e Entry) grant {
	return grant{ends: e.Answer.Expires, Approval: policy.Approval{
		ID: e.ID, Version: e.Package.Version, Upstream: e.Upstream, Denied: e.State == Denied,
		By: e.Answer.By, Reason: e.Answer.Reason, Digests: strong(e.Answer.Digests),
	}}
}

// strong are the digests that bind.
func strong(digests []string) []string {
	return slices.DeleteFunc(slices.Clone(digests), func(d string) bool { return !policy.StrongDigest(d) })
}

// grantsOf are those that hold at now, and a digest of them.
func grantsOf(answers []grant, now time.Time) ([]policy.Approval, string) {
	var grants []policy.Approval
	for _, g := range answers {
		if g.ends.IsZero() || now.Before(g.ends) {
			g.Digests = slices.Clone(g.Digests)
			grants = append(grants, g.Approval)
		}
	}
	if len(grants) == 0 {
		return nil, "none"
	}
	text, _ := json.Marshal(grants) // strings and booleans
	sum := sha256.Sum256(text)
	return grants, hex.EncodeToString(sum[:16])
}
