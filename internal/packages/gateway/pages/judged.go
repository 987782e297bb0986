package pages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// Judged is a page with the door's verdict on each of its files. Only Judge makes
// one, so what is rendered was judged.
type Judged struct {
	*Page
	source  Source
	project string
	answer  door.IndexAnswer
}

// Ref is the page's project.
func (j Judged) Ref() pkgref.Ref {
	return pkgref.Ref{Ecosystem: j.source.Ecosystem(), Name: j.project}
}

// Decision is the verdict on a file, by its place in the page's index.
func (j Judged) Decision(file int) policy.Decision { return j.answer.Verdicts[j.answer.OfFile[file]] }

// showsFile tells whether a file is shown, by its place in the page's index.
func (j Judged) showsFile(file int) bool { return j.answer.Verdicts[j.answer.OfFile[file]].Shown() }

// Decisions are the verdicts that some file has, each once.
func (j Judged) Decisions() []policy.Decision {
	var out []policy.Decision
	had := make([]bool, len(j.answer.Verdicts))
	for _, v := range j.answer.OfFile {
		if !had[v] {
			had[v], out = true, append(out, j.answer.Verdicts[v])
		}
	}
	return out
}

// RequestID is of the record of what is withheld.
func (j Judged) RequestID() string { return j.answer.RequestID }

// Reader is for whom a page is judged.
type Reader struct {
	Sandbox string
	Walk    bool // nobody is shown it: it is read on the way to another package
}

// Judge asks the door about a project's page, by its digest first. If the files'
// times were found out for that they are in the judged page.
func (ps *Pages) Judge(ctx context.Context, by Reader, s Source, project string, p *Page) (Judged, error) {
	if len(s.Makes) > 0 {
		p = p.offering(s)
	}
	ask := door.IndexAsk{
		Sandbox: by.Sandbox, Package: pkgref.Ref{Ecosystem: s.Ecosystem(), Name: project}, SourceURL: p.URL, Upstream: s.Index,
		Toolchain: s.Toolchain(project), IndexDigest: p.Digest, Walk: by.Walk,
	}
	a, err := ps.cfg.Door.Index(ctx, ask)
	if err == nil && a.NeedFiles && a.NeedTimes {
		p = ps.withTimes(ctx, s, project, p)
		ask.IndexDigest = p.Digest
	}
	if err == nil && a.NeedFiles {
		ask.Files = p.DoorFiles()
		a, err = ps.cfg.Door.Index(ctx, ask)
	}
	switch {
	case err != nil:
		return Judged{}, err
	case a.NeedFiles || a.Epoch == "":
		return Judged{}, errors.New("the door gave no verdicts")
	}
	if err := checkAnswer(a, len(p.Index.Files)); err != nil {
		return Judged{}, err
	}
	return Judged{p, s, project, a}, nil
}

// checkAnswer makes sure that the door judged each of the files.
func checkAnswer(a door.IndexAnswer, files int) error {
	if len(a.OfFile) != files {
		return fmt.Errorf("the door judged %d of %d files", len(a.OfFile), files)
	}
	for _, v := range a.OfFile {
		if v < 0 || v >= len(a.Verdicts) {
			return errors.New("the door refers to a verdict that it did not give")
		}
	}
	return nil
}

// maxTimed bounds the releases whose times are asked of a witness for one page:
// the highest, since those are what is installed. The others stay unknown.
const maxTimed = 64

// timing is the key of a flight.
type timing struct {
	key
	digest string
}

// withTimes gives a page with the times that its index does not have and a witness
// does; the page as it is if there are none.
func (ps *Pages) withTimes(ctx context.Context, s Source, project string, p *Page) *Page {
	if s.Times == nil {
		return p
	}
	versions := untimed(s, p)
	if len(versions) == 0 {
		return p
	}
	out, err := coalesce.Once(ctx, ps.cfg.Flights, timing{pageKey(s, project), p.Digest}, func(ctx context.Context) (*Page, error) {
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
		if now, ok := ps.read.Get(pageKey(s, project)); ok && now.Digest == p.Digest {
			with.fetched = now.fetched
			with.size += int64(64 * len(known))
			ps.rememberPage(s, project, &with)
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
	var releases []*pageRelease
	seen := map[string]bool{}
	for _, f := range p.Index.Files {
		if p.Published(&f).IsZero() && !seen[f.Version] {
			seen[f.Version] = true
			releases = append(releases, newPageRelease(s.Ecosystem(), f.Version))
		}
	}
	slices.SortFunc(releases, func(a, b *pageRelease) int { return b.CompareSpelled(a.Version) })
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
