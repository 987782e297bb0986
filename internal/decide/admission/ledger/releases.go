package ledger

import (
	"iter"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// Releases are all releases that a run has met. All that takes memory is
// counted, in bytes, and bounded. Its owner's lock guards it.
type Releases struct {
	most     int64
	shared   *Budget
	closed   bool
	size     int64
	projects map[pkgref.Ref]*project
}

// project is what is known of one project's releases: those that were moved one by
// one, and what the last page says of the others.
type project struct {
	own  map[string]Standing // by version
	page *Page
}

// NewReleases makes Releases that take at most so many bytes, about, out of a budget that they
// share with others.
func NewReleases(most int64, shared *Budget) *Releases {
	return &Releases{most: most, shared: shared, projects: map[pkgref.Ref]*project{}}
}

// Close forgets everything and gives its bytes back. Nothing is remembered after it.
func (r *Releases) Close() {
	r.reserveBytes(-r.size)
	r.closed, r.projects = true, map[pkgref.Ref]*project{}
}

// Of is where a release stands.
func (r *Releases) Of(ref pkgref.Ref) Standing {
	p := r.projects[ref.Project()]
	if p == nil {
		return Standing{}
	}
	if s, known := p.own[ref.Version]; known {
		return s
	}
	return p.page.standingOf(ref.Version)
}

// Move takes an event. A release that there is no more room for stays unknown: what
// it requires admits nothing.
func (r *Releases) Move(ref pkgref.Ref, e Event) (before, after Standing) {
	before = r.Of(ref)
	after = advance(before, e)
	p := r.projects[ref.Project()]
	if p != nil {
		if old, known := p.own[ref.Version]; known {
			r.changes(sizeOf(ref, after) - sizeOf(ref, old))
			p.own[ref.Version] = after
			return before, after
		}
	}
	if after == before {
		return before, after
	}
	size := sizeOf(ref, after)
	if !r.reserveBytes(size) {
		if p != nil && before.State != Unknown {
			less := p.page.withoutVersion(ref.Version) // what it was must not go on counting
			r.changes(less.Size() - p.page.Size())
			p.page = less
		}
		return before, Standing{}
	}
	if p == nil {
		p = &project{}
		r.projects[ref.Project()] = p
	}
	if p.own == nil {
		p.own = map[string]Standing{}
	}
	p.own[ref.Version] = after
	return before, after
}

// SetPage takes what a page says of a project's releases, in place of what an earlier
// one said. ok is false if there is no room for it: then nothing has changed.
// withdrawn tells that some release is not admitted any more, or through another
// entry, as it rested on the earlier page.
func (r *Releases) SetPage(ref pkgref.Ref, page *Page) (withdrawn, ok bool) {
	p := r.projects[ref.Project()]
	var old *Page
	if p != nil {
		old = p.page
	}
	if !r.reserveBytes(page.Size() - old.Size()) {
		return false, false
	}
	if p == nil {
		p = &project{}
		r.projects[ref.Project()] = p
	}
	for version, s := range old.allStandings() {
		if _, moved := p.own[version]; !moved && s.Admits() != "" && page.standingOf(version).Admits() != s.Admits() {
			withdrawn = true
		}
	}
	p.page = page
	for version, s := range p.own {
		after, listed := s, page.pageEvent(version)
		switch {
		case listed != nil:
			after = advance(s, *listed)
		case s.File == "" && s.Listed: // it rested on the page that is gone
			after = Standing{}
		}
		withdrawn = withdrawn || s.Admits() != "" && after.Admits() == ""
		of := ref.Project()
		of.Version = version
		r.changes(sizeOf(of, after) - sizeOf(of, s))
		p.own[version] = after
	}
	return withdrawn, true
}

// Page is the page that a project was shown last; nil if there was none.
func (r *Releases) Page(ref pkgref.Ref) *Page {
	if p := r.projects[ref.Project()]; p != nil {
		return p.page
	}
	return nil
}

// Knows tells whether anything is remembered of a project.
func (r *Releases) Knows(ref pkgref.Ref) bool { return r.projects[ref.Project()] != nil }

// Loosen takes back what was admitted only because something required it: it has to
// be reached again. A caller that withdraws a release calls it, and follows the
// requirements anew.
func (r *Releases) Loosen() {
	for _, p := range r.projects {
		for version, s := range p.own {
			p.own[version] = advance(s, Event{Kind: Loosened})
		}
	}
}

// All yields the releases that were moved one by one, in no order.
func (r *Releases) All() iter.Seq2[pkgref.Ref, Standing] {
	return func(yield func(pkgref.Ref, Standing) bool) {
		for ref, p := range r.projects {
			for version, s := range p.own {
				ref.Version = version
				if !yield(ref, s) {
					return
				}
			}
		}
	}
}

// Take takes bytes for what is kept beside the releases, such as what they require;
// less than nothing gives them back. ok is false if there is no room.
func (r *Releases) Take(bytes int64) (ok bool) { return r.reserveBytes(bytes) }

// Most is how many bytes there may be.
func (r *Releases) Most() int64 { return r.most }

// Size is about what is taken, in bytes.
func (r *Releases) Size() int64 { return r.size }

func (r *Releases) reserveBytes(bytes int64) bool {
	if bytes > 0 && (r.closed || r.size+bytes > r.most) || !r.closed && !r.shared.takeBytes(r.size, bytes) {
		return false
	}
	r.size += bytes
	return true
}

// changes counts what a change of something that is there already makes of its size;
// it is small, and never refused.
func (r *Releases) changes(bytes int64) {
	if !r.closed {
		r.shared.taken.Add(bytes)
	}
	r.size += bytes
}

func sizeOf(ref pkgref.Ref, s Standing) int64 {
	size := int64(200 + len(ref.Version) + len(s.File) + len(s.Through))
	if s.Facts != nil {
		size += factsSize(s.Facts)
	}
	return size
}

func factsSize(f *policy.FileFacts) int64 {
	size := int64(200 + len(f.File) + len(f.Version))
	for _, d := range slices.Concat(f.Digests, f.PartOf) {
		size += int64(16 + len(d))
	}
	return size
}
