package npm

import (
	"io"
	"maps"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
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
	d := &renderedPage{w: w, rows: rows, ix: ix, view: view, tags: left.pointed(ix.Tags)}
	switch view.Release {
	case "":
		d.packument()
	case distTags:
		d.writeTags()
	default:
		d.manifest()
	}
	d.flushPage()
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

// renderedPage is one page while it is written. The first error ends the writing.
type renderedPage struct {
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

func (d *renderedPage) flushPage() {
	if d.err == nil && len(d.buf) > 0 {
		_, d.err = d.w.Write(d.buf)
	}
	d.buf = d.buf[:0]
}

// appendRaw appends text that is JSON already.
func (d *renderedPage) appendRaw(s string) { d.buf = append(d.buf, s...) }

func (d *renderedPage) appendQuoted(s string) { d.buf = appendText(d.buf, s) }

// appendRow copies a row.
func (d *renderedPage) appendRow(e ecosystem.Extent) {
	if d.err != nil || e.Length == 0 {
		return
	}
	if len(d.buf) >= flushAt {
		d.flushPage()
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

func (d *renderedPage) packument() {
	d.appendRaw(`{"_id":`)
	d.appendQuoted(d.ix.Project)
	d.appendRaw(`,"name":`)
	d.appendQuoted(d.ix.Project)
	d.appendRaw(`,"dist-tags":`)
	d.writeTags()
	d.appendRaw(`,"versions":{`)
	first := true
	for i, f := range d.ix.Files {
		if !d.view.Verdicts[i].Allowed {
			continue
		}
		if !first {
			d.appendRaw(",")
		}
		first = false
		d.appendQuoted(f.Version)
		d.appendRaw(":")
		d.appendRelease(f)
	}
	d.appendRaw(`},"time":{`)
	d.appendTimes()
	d.appendRaw(`}`)
	d.appendAbout()
	d.appendRaw(`}`)
}

// appendRelease copies a release's manifest, or writes that of what is made of it.
func (d *renderedPage) appendRelease(f ecosystem.File) {
	e := d.manifestRow(f)
	if f.Kind != policy.KindRan {
		d.appendRow(e)
		return
	}
	if d.flushPage(); d.err != nil {
		return
	}
	d.appendRow(e)
	if d.err == nil {
		d.buf, d.err = manifestOfRan(d.buf, f)
	}
}

func (d *renderedPage) manifestRow(f ecosystem.File) ecosystem.Extent {
	if d.view.Form == formAbbreviated && len(f.Rows) > shortRow {
		return f.Rows[shortRow]
	}
	return f.Manifest
}

func (d *renderedPage) writeTags() {
	d.appendRaw(`{`)
	for i, tag := range slices.Sorted(maps.Keys(d.tags)) {
		if i > 0 {
			d.appendRaw(",")
		}
		d.appendQuoted(tag)
		d.appendRaw(":")
		d.appendQuoted(d.tags[tag])
	}
	d.appendRaw(`}`)
}

// appendTimes appends the times, which are there in both forms: the age gates of pnpm and yarn need them. A
// release of which the registry says no time has the page's own last one, which is not before it, if there is
// one. When this installation saw it first is nobody's business: it is when somebody else asked.
func (d *renderedPage) appendTimes() {
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
			d.appendRaw(",")
		}
		comma = true
		d.appendQuoted(f.Version)
		d.appendRaw(`:`)
		d.buf = appendTime(d.buf, f.Published)
	}
}

// optional appends a row of the index after a prefix, if there is one, and
// tells whether something now stands there.
func (d *renderedPage) optional(prefix string, row int, comma bool) bool {
	e := d.ix.Rows[row]
	if e.Length == 0 {
		return comma
	}
	if comma {
		d.appendRaw(",")
	}
	d.appendRaw(prefix)
	d.appendRow(e)
	return true
}

// appendAbout appends the project's own members; of the abbreviated form that is the
// time of the last change.
func (d *renderedPage) appendAbout() {
	d.optional(`"modified":`, rowModified, true)
	if d.view.Form == formFull {
		d.optional("", rowAbout, true)
	}
}

// manifest writes the one of view.Release, a version or a tag.
func (d *renderedPage) manifest() {
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
		d.appendRelease(f)
		return
	}
	for _, out := range d.ix.LeftOut {
		if out.Version == version && version != "" {
			d.err = fault.New(fault.ErrForbidden, "%s %s can't be served: %s", d.ix.Project, version, out.Reason)
			return
		}
	}
	d.err = fault.New(fault.ErrNotFound, "the registry has no release %q of %s", redact.Cut(d.view.Release, maxQuoted), d.ix.Project)
}

func appendTime(dst []byte, t time.Time) []byte {
	dst = t.UTC().AppendFormat(append(dst, '"'), timeFormat)
	return append(dst, '"')
}
