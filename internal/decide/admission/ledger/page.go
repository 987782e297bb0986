package ledger

import (
	"iter"
	"slices"
)

// Page is what one index page says of a project's releases: those that it shows, and
// how. It is made small, since runs keep thousands, and never changed: many share one.
type Page struct {
	digest   string
	epoch    string
	versions []string // that are shown, sorted
	says     []uint8  // of each: one of the codes below
	through  []string // by code
}

const (
	sayListed   = iota // a requirement may admit it
	sayWaits           // all that is shown of it waits
	sayAdmitted        // and all above, through through[code-sayAdmitted]
	maxThrough  = 255 - sayAdmitted
)

// PageMaker collects a Page.
type PageMaker struct {
	best map[string]Standing
}

// Add takes what the page says of one file of a release. Of several the one counts
// that lets the most in.
func (m *PageMaker) Add(version string, e Event) {
	if m.best == nil {
		m.best = map[string]Standing{}
	}
	said := advance(Standing{}, Event{Kind: e.Kind, Through: e.Through})
	had, known := m.best[version]
	if !known || rankOf(said) > rankOf(had) {
		m.best[version] = said
	}
}

func rankOf(s Standing) int {
	switch s.State {
	case Held:
		return 1
	case Shown:
		return 2
	case Admitted:
		if s.Through != "" {
			return 4
		}
		return 3
	case Unknown, Refused:
	}
	return 0
}

// Page gives the page with this digest, under verdicts that have a name of their own.
func (m *PageMaker) Page(digest, epoch string) *Page {
	p := &Page{digest: digest, epoch: epoch}
	for version, s := range m.best {
		if rankOf(s) > 0 {
			p.versions = append(p.versions, version)
		}
	}
	slices.Sort(p.versions)
	p.says = make([]uint8, len(p.versions))
	for i, version := range p.versions {
		p.says[i] = p.standingCode(m.best[version])
	}
	return p
}

func (p *Page) standingCode(s Standing) uint8 {
	switch s.State {
	case Held:
		return sayWaits
	case Admitted:
		at := slices.Index(p.through, s.Through)
		if at < 0 && len(p.through) < maxThrough {
			at = len(p.through)
			p.through = append(p.through, s.Through)
		}
		if at >= 0 {
			return uint8(sayAdmitted + at) // at most 255
		}
	case Unknown, Shown, Refused:
	}
	return sayListed
}

// Digest names the page.
func (p *Page) Digest() string {
	if p == nil {
		return ""
	}
	return p.digest
}

// Epoch names the verdicts under which it is shown.
func (p *Page) Epoch() string {
	if p == nil {
		return ""
	}
	return p.epoch
}

// Shown is how many releases the page shows.
func (p *Page) Shown() int {
	if p == nil {
		return 0
	}
	return len(p.versions)
}

// standingOf is where a release stands by the page alone.
func (p *Page) standingOf(version string) Standing {
	e := p.pageEvent(version)
	if e == nil {
		return Standing{}
	}
	return advance(Standing{}, *e)
}

// pageEvent is what the page says of a release; nil if it does not show it.
func (p *Page) pageEvent(version string) *Event {
	if p == nil {
		return nil
	}
	at, found := slices.BinarySearch(p.versions, version)
	if !found {
		return nil
	}
	return p.eventAt(at)
}

func (p *Page) eventAt(at int) *Event {
	switch code := p.says[at]; code {
	case sayListed:
		return &Event{Kind: Listed}
	case sayWaits:
		return &Event{Kind: Waits}
	default:
		return &Event{Kind: Allowed, Through: p.through[code-sayAdmitted]}
	}
}

func (p *Page) allStandings() iter.Seq2[string, Standing] {
	return func(yield func(string, Standing) bool) {
		if p == nil {
			return
		}
		for i, version := range p.versions {
			if !yield(version, advance(Standing{}, *p.eventAt(i))) {
				return
			}
		}
	}
}

// withoutVersion is the page without one release.
func (p *Page) withoutVersion(version string) *Page {
	if p == nil {
		return nil
	}
	less := &Page{digest: p.digest, epoch: p.epoch, through: p.through}
	for i, v := range p.versions {
		if v != version {
			less.versions, less.says = append(less.versions, v), append(less.says, p.says[i])
		}
	}
	return less
}

// Size is about what the page takes in memory. Pages are shared, and counted where
// they are kept all the same.
func (p *Page) Size() int64 {
	if p == nil {
		return 0
	}
	size := int64(250 + len(p.digest))
	for _, v := range p.versions {
		size += int64(33 + len(v))
	}
	return size
}
