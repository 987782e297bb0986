package npm

import (
	"errors"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// maxAbout bounds what of the project's own members is kept, each.
const maxAbout = 64 << 10

// packument is one reading of a page. Its members come in any order, so what
// is said in two places is joined at the end.
type packument struct {
	dec      *jsontext.Decoder
	in       *allowance
	rows     ecosystem.Rows
	base     *url.URL
	index    *ecosystem.Index
	name     string
	versions bool // the member was there
	tags     map[string]string
	times    map[string]time.Time
	created  time.Time
	modified time.Time
	parts    map[string][]string // by version: who requires exactly it as a part
	about    []byte              // the project's own members, as an object that is not closed
	release  versionManifest
}

// ParseIndex reads a packument one member of one manifest at a time, and writes
// a row per release and form.
func (Protocol) ParseIndex(project string, page ecosystem.Page, rows ecosystem.Rows) (*ecosystem.Index, error) {
	media, _, _ := strings.Cut(page.ContentType, ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case typeFull, typeAbbreviated:
	default:
		return nil, fault.Invalid("the registry answered with the content type %q; a packument is JSON", redact.Cut(page.ContentType, maxQuoted))
	}
	base, err := url.Parse(page.URL)
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the packument's own URL can't be read")
	}
	in := &allowance{r: page.Body}
	p := &packument{
		dec: jsontext.NewDecoder(in), in: in, rows: rows, base: base,
		index: &ecosystem.Index{Project: project}, times: map[string]time.Time{}, parts: map[string][]string{}, about: []byte{'{'},
	}
	p.in.allowFrom(0)
	if err := p.readPage(); err != nil {
		return nil, invalidPage(err)
	}
	return p.index, p.finishPage()
}

// invalidPage gives a decoder's error its category. Its text may quote the
// upstream, so it is the cause and not the sentence.
func invalidPage(err error) error {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f
	}
	if _, ok := errors.AsType[*jsontext.SyntacticError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fault.Wrap(fault.ErrInvalid, err, "the packument is not the JSON that the protocol prescribes")
	}
	return err // of the page's reader or of the rows
}

func (p *packument) readPage() error {
	if err := p.object("the packument is not a JSON object", p.readMember); err != nil {
		return err
	}
	p.in.allowFrom(p.dec.InputOffset())
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = fault.Invalid("the packument goes on after its end")
		}
		return err
	}
	return nil
}

// object visits an object's members; visit reads the value.
func (p *packument) object(otherwise string, visit func(name string) error) error {
	if k := p.dec.PeekKind(); k != '{' {
		if _, err := p.dec.ReadToken(); err != nil {
			return err
		}
		return fault.Invalid("%s", otherwise)
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	for {
		p.in.allowFrom(p.dec.InputOffset())
		if p.dec.PeekKind() == '}' {
			break
		}
		name, err := p.dec.ReadToken()
		if err != nil {
			return err
		}
		if err := visit(name.String()); err != nil {
			return err
		}
	}
	_, err := p.dec.ReadToken()
	return err
}

// nextValue reads the next value; it is valid until the next reading.
func (p *packument) nextValue() (jsontext.Value, error) {
	p.in.allowFrom(p.dec.InputOffset())
	return p.dec.ReadValue()
}

// nextText reads a string; any other value is "".
func (p *packument) nextText() (string, error) {
	v, err := p.nextValue()
	if err != nil {
		return "", err
	}
	s, _ := stringOf(v)
	return s, nil
}

// skipValue reads past a value of any size.
func (p *packument) skipValue() error {
	depth := p.dec.StackDepth()
	for {
		p.in.allowFrom(p.dec.InputOffset())
		if _, err := p.dec.ReadToken(); err != nil {
			return err
		}
		if p.dec.StackDepth() <= depth {
			return nil
		}
	}
}

func (p *packument) readMember(name string) (err error) {
	switch name {
	case "name":
		p.name, err = p.nextText()
		return err
	case "dist-tags":
		v, err := p.nextValue()
		if err != nil {
			return err
		}
		tags, ok := textMap(v)
		if !ok {
			return fault.Invalid("the packument's dist-tags are not versions by name")
		}
		p.tags = tags
		return nil
	case "versions":
		p.versions = true
		return p.object("the packument's versions are not an object", p.readRelease)
	case "time":
		return p.object("the packument's times are not an object", p.readTime)
	case "description", "homepage", "keywords", "repository", "author", "bugs", "license", "maintainers", "contributors":
		return p.keepMember(name)
	}
	return p.skipValue()
}

// keepMember keeps one of the project's own members for pages in full form.
func (p *packument) keepMember(name string) error {
	v, err := p.nextValue()
	if err == nil && len(v) <= maxAbout {
		p.about = appendMember(p.about, name, v)
	}
	return err
}

// readTime reads when a version was published. A text that is no time is as none: policy
// decides on a release whose time is not known.
func (p *packument) readTime(name string) error {
	if p.dec.PeekKind() != '"' {
		return p.skipValue()
	}
	s, err := p.nextText()
	if err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return nil //nolint:nilerr // no time
	}
	switch t = t.UTC(); name {
	case "created":
		p.created = t
	case "modified":
		p.modified = t
	default:
		if len(p.times) >= ecosystem.MaxFiles {
			return fault.Invalid("the packument has more than %d times", ecosystem.MaxFiles)
		}
		p.times[name] = t
	}
	return nil
}

// finishPage checks the page as a whole and joins what was said in several places.
func (p *packument) finishPage() error {
	switch {
	case p.name != p.index.Project:
		return fault.Invalid("the packument is about %q, and %s was asked for", redact.Cut(p.name, maxQuoted), p.index.Project)
	case !p.versions:
		return fault.New(fault.ErrNotFound, "the registry has no releases of %s", p.index.Project)
	}
	for i := range p.index.Files {
		f := &p.index.Files[i]
		f.Published, f.PartOf = p.times[f.Version], p.parts[f.Version]
	}
	p.index.Tags = listedTags(p.index, p.tags)
	var created, modified []byte
	if !p.created.IsZero() {
		created = appendTime(nil, p.created)
	}
	if !p.modified.IsZero() {
		modified = appendTime(nil, p.modified)
	}
	for _, row := range [rowCount][]byte{rowAbout: p.about[1:], rowCreated: created, rowModified: modified} {
		var e ecosystem.Extent
		if len(row) > 0 {
			var err error
			if e, err = p.rows.Append(row); err != nil {
				return err
			}
		}
		p.index.Rows = append(p.index.Rows, e)
	}
	return nil
}

// leaveOut notes a release that nobody may have. version is as the page has it.
func (p *packument) leaveOut(version, path, reason string) {
	out := ecosystem.LeftOut{Name: bareName(p.index.Project) + "-" + redact.Cut(ecosystem.Line(version), maxQuoted) + tarballSuffix, Path: path, Reason: reason}
	if _, err := pkgref.CanonicalVersion(pkgref.Node, version); err == nil {
		out.Version = version
	}
	p.index.LeftOut = append(p.index.LeftOut, out)
}
