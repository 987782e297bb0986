package pages

import (
	"errors"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// Page is an upstream's index page, read: its index in memory, and its rows, the pieces of text from
// which pages are rendered, in the cache. It is never changed.
type Page struct {
	Index  *ecosystem.Index // without the files on unknown hosts
	Hosts  map[string]bool  // of all files that the page lists
	Digest string           // over the bytes, the known hosts and the files' times
	URL    string

	byPath      places
	stored      *cache.Rows
	source      string // digest of the upstream's bytes
	known       string // the file hosts that were known when it was read
	etag        string // empty, or what the upstream is asked with next
	contentType string
	fetched     time.Time
	size        int64 // about what it takes in memory, in bytes
	// published are times that the index does not have and a witness does, by
	// version; nil: it was not asked.
	published map[string]time.Time
	// gone is set once the rows can't be had, or not be understood: the page is
	// then good for nothing but its files' times. Copies share it.
	gone *atomic.Bool
}

// places are the indexes of a page's files by the paths at which they are asked for.
type places map[string]int

// putPath notes a file's path, and the upstream's own if clients are given another: older lockfiles have that one.
func (p places) putPath(f *ecosystem.File, i int) {
	p[f.Path] = i
	if f.Shown == "" {
		return
	}
	u, err := url.Parse(f.URL)
	if err != nil {
		return
	}
	path, err := ecosystem.PathOf(u.EscapedPath())
	if _, taken := p[path]; err == nil && !taken {
		p[path] = i
	}
}

// At is the file at a path, with its time if anybody knows it.
func (p *Page) At(path string) (f ecosystem.File, ok bool) {
	i, ok := p.byPath[path]
	if !ok {
		return f, false
	}
	f = p.Index.Files[i]
	f.Published = p.Published(&f)
	return f, true
}

// Lists tells whether the page has a release, whatever becomes of its files.
func (p *Page) Lists(version string) bool {
	return slices.ContainsFunc(p.Index.Files, func(f ecosystem.File) bool { return f.Version == version }) ||
		slices.ContainsFunc(p.Index.LeftOut, func(l ecosystem.LeftOut) bool { return l.Version == version })
}

// Published is when a file of the page was published; zero: nobody knows.
func (p *Page) Published(f *ecosystem.File) time.Time {
	if f.Published.IsZero() {
		return p.published[f.Version]
	}
	return f.Published
}

// Row gives a copy of one piece of the rows; nil for an empty one.
func (p *Page) Row(e ecosystem.Extent) ([]byte, error) {
	if e.Length == 0 {
		return nil, nil
	}
	rows, err := p.openRows()
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the index page has changed meanwhile; ask again")
	}
	defer rows.Close()
	return ecosystem.Slice(rows, e)
}

// openRows opens the rows for reading. The caller closes them.
func (p *Page) openRows() (cache.OpenRows, error) {
	rows, err := p.stored.Open()
	if errors.Is(err, cache.ErrRowsGone) {
		p.gone.Store(true) // whoever asks for the page next has it fetched again
	}
	return rows, err
}

// DoorFiles are the index's files as the door wants them; never nil, which
// would mean "not told".
func (p *Page) DoorFiles() []door.File {
	files := make([]door.File, len(p.Index.Files))
	for i, f := range p.Index.Files {
		files[i] = DoorFile(f)
		files[i].Published = p.Published(&f)
	}
	return files
}

// DoorFile is a file as far as policy cares.
func DoorFile(f ecosystem.File) door.File {
	return door.File{
		Name: f.Name, Version: f.Version, Kind: f.Kind, Digest: f.Digest, Size: f.Size,
		Published: f.Published, FirstSeen: f.FirstSeen, Yanked: f.Yanked, Scripts: f.Scripts, PartOf: f.PartOf,
	}
}
