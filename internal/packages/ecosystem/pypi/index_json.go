package pypi

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// jsonFile is a file of the JSON page. Members that nobody here reads may have
// any type; the others must have theirs.
type jsonFile struct {
	Filename         string            `json:"filename"`
	URL              string            `json:"url"`
	Hashes           map[string]string `json:"hashes"`
	RequiresPython   string            `json:"requires-python"`
	CoreMetadata     jsontext.Value    `json:"core-metadata"`
	DistInfoMetadata jsontext.Value    `json:"dist-info-metadata"`
	Yanked           jsontext.Value    `json:"yanked"`
	Size             int64             `json:"size"`
	UploadTime       string            `json:"upload-time"`
}

// parseJSON reads the page one file at a time. The decoder refuses duplicate
// keys, invalid UTF-8 and deep nesting, and matches keys exactly.
func parseJSON(project string, page ecosystem.Page) (*ecosystem.Index, error) {
	l, err := newListing(project, page.URL)
	if err != nil {
		return nil, err
	}
	dec := jsontext.NewDecoder(page.Body)
	p := jsonPage{listing: l, dec: dec}
	if err := p.readPage(); err != nil {
		return nil, invalidPage(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fault.Invalid("the index page goes on after its end")
	}
	return l.index, p.checkPage()
}

// invalidPage gives a decoder's error its category. Its text may quote the
// upstream, so it is the cause and not the sentence.
func invalidPage(err error) error {
	if errors.Is(err, fault.ErrInvalid) {
		return err
	}
	return fault.Wrap(fault.ErrInvalid, err, "the index page is not the JSON that the protocol prescribes")
}

type jsonPage struct {
	*listing
	dec  *jsontext.Decoder
	meta struct {
		APIVersion string `json:"api-version"`
	}
	name  string
	files bool
}

func (p *jsonPage) readPage() error {
	if k := p.dec.PeekKind(); k != '{' {
		return fault.Invalid("the index page is not a JSON object")
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	for p.dec.PeekKind() != '}' {
		key, err := p.dec.ReadToken()
		if err != nil {
			return err
		}
		if err := p.readMember(key.String()); err != nil {
			return err
		}
	}
	_, err := p.dec.ReadToken()
	return err
}

func (p *jsonPage) readMember(key string) error {
	switch key {
	case "meta":
		return json.UnmarshalDecode(p.dec, &p.meta)
	case "name":
		return json.UnmarshalDecode(p.dec, &p.name)
	case "project-status":
		return p.readStatus()
	case "files":
		p.files = true
		return p.readFiles()
	}
	return p.dec.SkipValue()
}

func (p *jsonPage) readStatus() error {
	var s struct {
		Status string `json:"status"`
	}
	if err := json.UnmarshalDecode(p.dec, &s); err != nil {
		return err
	}
	switch s.Status {
	case "active", "archived", "quarantined", "deprecated":
		p.index.Status = s.Status
	}
	return nil
}

func (p *jsonPage) readFiles() error {
	if k := p.dec.PeekKind(); k != '[' {
		return fault.Invalid("the index page's files are not a list")
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	for p.dec.PeekKind() != ']' {
		var f jsonFile
		if err := json.UnmarshalDecode(p.dec, &f); err != nil {
			return err
		}
		if err := p.addFile(f); err != nil {
			return err
		}
	}
	_, err := p.dec.ReadToken()
	return err
}

func (p *jsonPage) addFile(f jsonFile) error {
	e := listedFile{name: f.Filename, link: f.URL, sha256: f.Hashes["sha256"], requires: f.RequiresPython}
	if f.Size < 0 {
		return fault.Invalid("the index gives a file a negative size")
	}
	e.file.Size = f.Size
	if f.UploadTime != "" {
		t, err := time.Parse(time.RFC3339, f.UploadTime)
		if err != nil {
			return fault.Invalid("the index gives a file an invalid upload time")
		}
		e.file.Published = t.UTC()
	}
	var err error
	if e.file.Yanked, err = readYanked(f.Yanked); err != nil {
		return err
	}
	for _, v := range []jsontext.Value{f.DistInfoMetadata, f.CoreMetadata} { // the newer name wins
		if err := readSidecar(v, &e.sidecar); err != nil {
			return err
		}
	}
	return p.addEntry(e)
}

// readYanked: false, true, or the reason, which is the publisher's text and
// goes no further.
func readYanked(v jsontext.Value) (bool, error) {
	switch v.Kind() {
	case 't', '"':
		return true, nil
	case 'f', 'n', 0:
		return false, nil
	default:
		return false, fault.Invalid("the index marks a file yanked with something else than a boolean or a text")
	}
}

// readSidecar: false, true, or digests by algorithm.
func readSidecar(v jsontext.Value, sha256 *string) error {
	switch v.Kind() {
	case 't', 'f', 'n', 0:
		return nil
	case '{':
		var hashes map[string]string
		if err := json.Unmarshal(v, &hashes); err != nil {
			return err
		}
		*sha256 = hashes["sha256"]
		return nil
	default:
		return fault.Invalid("the index gives a file's core metadata as something else than a boolean or digests")
	}
}

// checkPage checks what must hold of the page as a whole.
func (p *jsonPage) checkPage() error {
	switch {
	case !strings.HasPrefix(p.meta.APIVersion, "1."):
		return fault.Invalid("the index page has the API version %q; 1.x is read", redact.Cut(p.meta.APIVersion, maxQuoted))
	case !p.files:
		return fault.Invalid("the index page has no files member")
	}
	if name, err := pkgref.CanonicalName(pkgref.Python, p.name); err != nil || name != p.index.Project {
		return fault.Invalid("the index page is about %q, and %s was asked for", redact.Cut(p.name, maxQuoted), p.index.Project)
	}
	return nil
}
