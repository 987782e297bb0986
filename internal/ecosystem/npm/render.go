package npm

import (
	"io"
	"maps"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/masking"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// The rows of an index.
const (
	rowAbout   = iota // the project's own members, as they stand in an object
	rowCreated        // times as JSON strings; empty if there are none
	rowModified
	rowCount
)

// shortRow is the place of the abbreviated manifest among a file's rows.
const shortRow = 0

// timeFormat is how registries write times.
const timeFormat = "2006-01-02T15:04:05.000Z"

// Render writes the packument of the allowed releases, or of view.Release one
// manifest or the dist-tags. ErrForbidden: nothing of what is asked for is
// allowed; ErrNotFound: the registry has no such release.
func (Protocol) Render(w io.Writer, ix *ecosystem.Index, rows io.ReaderAt, view ecosystem.View) error {
	switch {
	case len(view.Verdicts) != len(ix.Files):
		return fault.Invalid("%d verdicts for the %d files of %s", len(view.Verdicts), len(ix.Files), ix.Project)
	case view.Form != formFull && view.Form != formAbbreviated:
		return fault.Invalid("no form %q of a packument", string(view.Form))
	case len(ix.Rows) != rowCount:
		return fault.Invalid("the index of %s has no rows of this protocol", ix.Project)
	}
	left := ladderOf(ix, func(i int) bool { return view.Verdicts[i].Allowed })
	if len(left.has) == 0 {
		return nothingLeft(ix, view)
	}
	d := &page{w: w, rows: rows, ix: ix, view: view, tags: left.pointed(ix.Tags)}
	switch view.Release {
	case "":
		d.packument()
	case distTags:
		d.writeTags()
	default:
		d.manifest()
	}
	d.flush()
	return d.err
}

// nothingLeft words why there is no page.
func nothingLeft(ix *ecosystem.Index, view ecosystem.View) error {
	for _, v := range view.Verdicts {
		return fault.New(fault.ErrForbidden, "none of the %d releases of %s is allowed; of the first: %s", len(ix.Files), ix.Project, v.Reason)
	}
	for _, out := range ix.LeftOut {
		return fault.New(fault.ErrForbidden, "none of the %d releases of %s can be served; of the first, %s", len(ix.LeftOut), ix.Project, out.Reason)
	}
	return fault.New(fault.ErrNotFound, "the registry has no releases of %s", ix.Project)
}

// page is one page while it is written. The first error ends the writing.
type page struct {
	w    io.Writer
	rows io.ReaderAt
	ix   *ecosystem.Index
	view ecosystem.View
	tags map[string]string
	buf  []byte
	err  error
}

// flushAt is how much is gathered before it is written.
const flushAt = 64 << 10

func (d *page) flush() {
	if d.err == nil && len(d.buf) > 0 {
		_, d.err = d.w.Write(d.buf)
	}
	d.buf = d.buf[:0]
}

// raw appends text that is JSON already.
func (d *page) raw(s string) { d.buf = append(d.buf, s...) }

func (d *page) quote(s string) { d.buf = appendText(d.buf, s) }

// row copies a row.
func (d *page) row(e ecosystem.Extent) {
	if d.err != nil || e.Length == 0 {
		return
	}
	if len(d.buf) >= flushAt {
		d.flush()
	}
	from := len(d.buf)
	d.buf = slices.Grow(d.buf, int(e.Length))[:from+int(e.Length)]
	n, err := d.rows.ReadAt(d.buf[from:], e.Offset)
	if n < int(e.Length) {
		d.err = err
		if err == nil {
			d.err = io.ErrUnexpectedEOF
		}
	}
}

func (d *page) packument() {
	d.raw(`{"_id":`)
	d.quote(d.ix.Project)
	d.raw(`,"name":`)
	d.quote(d.ix.Project)
	d.raw(`,"dist-tags":`)
	d.writeTags()
	d.raw(`,"versions":{`)
	first := true
	for i, f := range d.ix.Files {
		if !d.view.Verdicts[i].Allowed {
			continue
		}
		if !first {
			d.raw(",")
		}
		first = false
		d.quote(f.Version)
		d.raw(":")
		d.release(f)
	}
	d.raw(`},"time":{`)
	d.times()
	d.raw(`}`)
	d.about()
	d.raw(`}`)
}

// release copies a release's manifest, or writes that of what is made of it.
func (d *page) release(f ecosystem.File) {
	e := d.manifestRow(f)
	if f.Kind != policy.KindRan {
		d.row(e)
		return
	}
	if d.flush(); d.err != nil {
		return
	}
	d.row(e)
	if d.err == nil {
		d.buf, d.err = manifestOfRan(d.buf, f)
	}
}

func (d *page) manifestRow(f ecosystem.File) ecosystem.Extent {
	if d.view.Form == formAbbreviated && len(f.Rows) > shortRow {
		return f.Rows[shortRow]
	}
	return f.Manifest
}

func (d *page) writeTags() {
	d.raw(`{`)
	for i, tag := range slices.Sorted(maps.Keys(d.tags)) {
		if i > 0 {
			d.raw(",")
		}
		d.quote(tag)
		d.raw(":")
		d.quote(d.tags[tag])
	}
	d.raw(`}`)
}

// times are there in both forms: the age gates of pnpm and yarn need them. A release of which the registry says
// no time has the page's own last one, which is not before it, if there is one. When this installation saw it first is
// nobody's business: it is when somebody else asked.
func (d *page) times() {
	comma := d.optional(`"created":`, rowCreated, false)
	comma = d.optional(`"modified":`, rowModified, comma)
	for i, f := range d.ix.Files {
		if !d.view.Verdicts[i].Allowed {
			continue
		}
		if f.Published.IsZero() {
			comma = d.optional(string(appendText(nil, f.Version))+":", rowModified, comma)
			continue
		}
		if comma {
			d.raw(",")
		}
		comma = true
		d.quote(f.Version)
		d.raw(`:`)
		d.buf = appendTime(d.buf, f.Published)
	}
}

// optional appends a row of the index after a prefix, if there is one, and
// tells whether something now stands there.
func (d *page) optional(prefix string, row int, comma bool) bool {
	e := d.ix.Rows[row]
	if e.Length == 0 {
		return comma
	}
	if comma {
		d.raw(",")
	}
	d.raw(prefix)
	d.row(e)
	return true
}

// about appends the project's own members; of the abbreviated form that is the
// time of the last change.
func (d *page) about() {
	d.optional(`"modified":`, rowModified, true)
	if d.view.Form == formFull {
		d.optional("", rowAbout, true)
	}
}

// manifest writes the one of view.Release, a version or a tag.
func (d *page) manifest() {
	version, isTag := d.tags[d.view.Release]
	if !isTag {
		version = d.view.Release
	}
	for i, f := range d.ix.Files {
		if f.Version != version {
			continue
		}
		if v := d.view.Verdicts[i]; !v.Allowed {
			d.err = fault.New(fault.ErrForbidden, "%s %s: %s", d.ix.Project, version, v.Reason)
			return
		}
		d.release(f)
		return
	}
	for _, out := range d.ix.LeftOut {
		if out.Version == version && version != "" {
			d.err = fault.New(fault.ErrForbidden, "%s %s can't be served: %s", d.ix.Project, version, out.Reason)
			return
		}
	}
	d.err = fault.New(fault.ErrNotFound, "the registry has no release %q of %s", masking.Cut(d.view.Release, maxQuoted), d.ix.Project)
}

func appendTime(dst []byte, t time.Time) []byte {
	dst = t.UTC().AppendFormat(append(dst, '"'), timeFormat)
	return append(dst, '"')
}
