package pages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/gateway/flight"
)

// maxTimed bounds the releases whose times are asked of a witness for one page:
// the highest, since those are what is installed. The others stay unknown.
const maxTimed = 64

// timing is the key of a flight.
type timing struct {
	key
	digest string
}

// timed gives a page with the times that its index does not have and a witness
// does; the page as it is if there are none.
func (ps *Pages) timed(ctx context.Context, s Source, project string, p *Page) *Page {
	if s.Times == nil {
		return p
	}
	versions := untimed(s, p)
	if len(versions) == 0 {
		return p
	}
	out, err := flight.Once(ctx, ps.cfg.Flights, timing{keyOf(s, project), p.Digest}, func(ctx context.Context) (*Page, error) {
		known := s.Times(ctx, project, versions)
		if len(known) == 0 {
			return p, nil // the witness may be reached another time
		}
		with := *p
		with.published = maps.Clone(p.published)
		if with.published == nil {
			with.published = known
		}
		maps.Copy(with.published, known)
		with.Digest = timedDigest(p.Digest, versions, known)
		if now, ok := ps.read.Get(keyOf(s, project)); ok && now.Digest == p.Digest {
			with.fetched = now.fetched
			with.size += int64(64 * len(known))
			ps.remember(s, project, &with)
		}
		return &with, nil
	})
	if err != nil {
		return p
	}
	return out
}

// untimed are the highest versions of which some file has no time.
func untimed(s Source, p *Page) []string {
	var releases []*release
	seen := map[string]bool{}
	for _, f := range p.Index.Files {
		if p.Published(&f).IsZero() && !seen[f.Version] {
			seen[f.Version] = true
			releases = append(releases, newRelease(s.Ecosystem(), f.Version))
		}
	}
	slices.SortFunc(releases, func(a, b *release) int { return b.CompareSpelled(a.Version) })
	versions := make([]string, 0, maxTimed)
	for _, r := range releases[:min(len(releases), maxTimed)] {
		versions = append(versions, r.String())
	}
	return versions
}

// timedDigest covers a page and the times that were found out for it.
func timedDigest(digest string, versions []string, known map[string]time.Time) string {
	sum := sha256.New()
	fmt.Fprintln(sum, digest)
	for _, v := range versions {
		if t, ok := known[v]; ok {
			fmt.Fprintln(sum, v, t.Unix())
		}
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}
