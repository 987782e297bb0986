package pypi

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// maxTag bounds one HTML tag; a page's are some hundred bytes.
const maxTag = 64 << 10

// parseHTML reads the page of an index that speaks no JSON. It has neither
// sizes nor upload times, which is for the policy to judge.
func parseHTML(project string, page ecosystem.Page) (*ecosystem.Index, error) {
	body, err := io.ReadAll(page.Body)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0 {
		return nil, fault.Invalid("the index page is not UTF-8 text")
	}
	l, err := newListing(project, page.URL)
	if err != nil {
		return nil, err
	}
	p := htmlPage{listing: l}
	z := html.NewTokenizer(bytes.NewReader(body))
	z.SetMaxBuf(maxTag)
	for {
		switch z.Next() {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				return nil, fault.Wrap(fault.ErrInvalid, z.Err(), "the index page is not HTML that can be read")
			}
			return l.index, p.checkPage()
		case html.StartTagToken, html.SelfClosingTagToken:
			if err := p.readTag(z.Token()); err != nil {
				return nil, err
			}
		case html.TextToken, html.EndTagToken, html.CommentToken, html.DoctypeToken:
		}
	}
}

type htmlPage struct {
	*listing
	version string // of the repository, as the page says
	based   bool
}

func (p *htmlPage) readTag(t html.Token) error {
	attrs, err := attributes(t)
	if err != nil {
		return err
	}
	switch t.Data {
	case "base":
		return p.rebase(attrs["href"])
	case "meta":
		if attrs["name"] == "pypi:repository-version" {
			p.version = attrs["content"]
		}
	case "a":
		if link, ok := attrs["href"]; ok {
			return p.anchor(link, attrs)
		}
	}
	return nil
}

// attributes refuses a tag that has one twice: two readers would differ.
func attributes(t html.Token) (map[string]string, error) {
	m := make(map[string]string, len(t.Attr))
	for _, a := range t.Attr {
		if _, twice := m[a.Key]; twice {
			return nil, fault.Invalid("the index page has a tag with the same attribute twice")
		}
		m[a.Key] = a.Val
	}
	return m, nil
}

func (p *htmlPage) rebase(href string) error {
	ref, err := url.Parse(href)
	if err != nil || p.based || len(p.index.Files)+len(p.index.LeftOut) > 0 {
		return fault.Invalid("the index page sets its base in a way that readers disagree on")
	}
	p.based = true
	p.base = p.base.ResolveReference(ref)
	return nil
}

func (p *htmlPage) anchor(link string, attrs map[string]string) error {
	location, filePath, fragment, reason := ecosystem.ResolveFile(p.base, link)
	if reason != "" {
		p.leaveOut(redact.Cut(link, maxQuoted), reason)
		return nil
	}
	e := listedFile{name: path.Base(filePath), link: location, requires: attrs["data-requires-python"]}
	if digest, ok := strings.CutPrefix(fragment, "sha256="); ok {
		e.sha256 = digest
	}
	_, e.file.Yanked = attrs["data-yanked"]
	for _, key := range []string{"data-dist-info-metadata", "data-core-metadata"} {
		if digest, ok := strings.CutPrefix(attrs[key], "sha256="); ok {
			e.sidecar = digest
		}
	}
	return p.addEntry(e)
}

// checkPage tells an index page from any other: a captive portal answers HTML too.
func (p *htmlPage) checkPage() error {
	switch {
	case p.version != "" && p.version != "1" && !strings.HasPrefix(p.version, "1."):
		return fault.Invalid("the index page has the repository version %q; 1.x is read", redact.Cut(p.version, maxQuoted))
	case p.version == "" && len(p.index.Files) == 0:
		return fault.Invalid("the answer is HTML that lists no file of %s: not an index page", p.index.Project)
	}
	return nil
}
