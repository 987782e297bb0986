package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
)

// maxTimed bounds the releases whose times are asked of a witness for one page:
// the highest, since those are what is installed. The others stay unknown.
const maxTimed = 64

// timed gives a page with the times that its index does not have and a witness
// does; the page as it is if there are none.
func (g *Gateway) timed(ctx context.Context, s *source, project string, p *page) *page {
	if _, ok := s.protocol.(ecosystem.Witness); !ok {
		return p
	}
	versions := untimed(s, p)
	if len(versions) == 0 {
		return p
	}
	out, err := flight(ctx, g, "times "+pageKey(s, project)+" "+p.digest, func(ctx context.Context) (*page, error) {
		known := g.times(ctx, s, project, versions)
		if len(known) == 0 {
			return p, nil // the witness may be reached another time
		}
		with := *p
		with.published = maps.Clone(p.published)
		if with.published == nil {
			with.published = known
		}
		maps.Copy(with.published, known)
		with.digest = timedDigest(p.digest, versions, known)
		if now, ok := g.pages.get(pageKey(s, project)); ok && now.digest == p.digest {
			with.fetched = now.fetched
			with.size += int64(64 * len(known))
			g.pages.put(pageKey(s, project), &with, with.size)
		}
		return &with, nil
	})
	if err != nil {
		return p
	}
	return out
}

// untimed are the highest versions of which some file has no time.
func untimed(s *source, p *page) []string {
	var releases []*release
	seen := map[string]bool{}
	for _, f := range p.index.Files {
		if f.Published.IsZero() && p.published[f.Version].IsZero() && !seen[f.Version] {
			seen[f.Version] = true
			releases = append(releases, newRelease(s.ecosystem(), f.Version))
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
