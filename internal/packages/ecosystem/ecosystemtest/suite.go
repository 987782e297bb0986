// Package ecosystemtest is the conformance suite of ecosystem.Protocol: what
// every registry's protocol must do, whatever its wire form.
//
// Each protocol gives a sample, a good page and the requests that belong to it, from which the
// suite derives hostile ones.
package ecosystemtest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// Sample is what a protocol's test gives the suite.
type Sample struct {
	Protocol ecosystem.Protocol
	Project  string // canonical
	// The page: where it came from, its type and its bytes.
	URL, ContentType string
	Body             []byte
	Files            int // that the page lists and nobody leaves out; at least 2
	Place            ecosystem.Place
	// IndexPath is the canonical path of the project's page. Spellings are
	// other paths that must lead to it by a redirect.
	IndexPath string
	Spellings []string
	// Hostile are paths of this protocol that must be refused, beside the
	// suite's own.
	Hostile []string
	Accept  []string // one Accept header per form
	// Shown is what of a file stands on a page; nil: its name.
	Shown func(ecosystem.File) string
	// Harmless names hostile pages that are good ones in this protocol (a list
	// of lines, cut, is a shorter list).
	Harmless []string
}

// Run runs the suite.
func Run(t *testing.T, s Sample) {
	t.Helper()
	t.Run("routes", s.routes)
	t.Run("hostile paths", s.hostilePaths)
	t.Run("index round trip", s.roundTrip)
	t.Run("hostile pages", s.hostilePages)
	t.Run("withheld files keep the allowed ones", s.withheld)
	t.Run("refusals", s.refusals)
}

func (s Sample) readIndex(t *testing.T) *ecosystem.Index {
	t.Helper()
	ix, _ := s.parsed(t)
	if len(ix.Files) != s.Files {
		t.Fatalf("the sample page lists %d files, want %d (left out: %v)", len(ix.Files), s.Files, ix.LeftOut)
	}
	return ix
}

// parsed reads the sample page.
func (s Sample) parsed(t *testing.T) (*ecosystem.Index, *ecosystem.MemoryRows) {
	t.Helper()
	rows := &ecosystem.MemoryRows{}
	ix, err := s.Protocol.ParseIndex(s.Project, ecosystem.PageOf(s.URL, s.ContentType, s.Body), rows)
	if err != nil {
		t.Fatalf("the sample page does not parse: %v", err)
	}
	return ix, rows
}

func (s Sample) render(ix *ecosystem.Index, rows *ecosystem.MemoryRows, verdicts []ecosystem.Verdict, form ecosystem.Form) ([]byte, error) {
	var b bytes.Buffer
	err := s.Protocol.Render(&b, ix, rows, ecosystem.View{Form: form, Verdicts: verdicts})
	return b.Bytes(), err
}

func (s Sample) routes(t *testing.T) {
	r, err := s.Protocol.Route(s.Place, ecosystem.Request{Path: s.IndexPath})
	if err != nil || r.Kind != ecosystem.RouteIndex || r.Project != s.Project {
		t.Fatalf("Route(%s) = %+v, %v; want the page of %s", s.IndexPath, r, err, s.Project)
	}
	for _, path := range s.Spellings {
		r, err := s.Protocol.Route(s.Place, ecosystem.Request{Path: path})
		if err != nil || r.Kind != ecosystem.RouteRedirect || r.Location != s.IndexPath {
			t.Errorf("Route(%s) = %+v, %v; want a redirect to %s", path, r, err, s.IndexPath)
		}
	}
	for _, f := range s.readIndex(t).Files {
		r, err := s.Protocol.Route(ecosystem.Place{Files: true}, ecosystem.Request{Path: f.Path})
		if err != nil || r.Kind != ecosystem.RouteFile || r.Project != s.Project || r.File != f.Name || r.Version != f.Version || r.Path != f.Path {
			t.Errorf("Route(%s) = %+v, %v; want the file %s", f.Path, r, err, f.Name)
		}
	}
}

func (s Sample) hostilePaths(t *testing.T) {
	paths := append([]string{
		"", "x", "//", "/..", "/../" + s.Project, s.IndexPath + "../x/", "/%2e%2e/", "/%2E%2E%2F", "/a%00b/", "/a%0d%0ab/",
		"/a\\b/", "/a%5cb/", "/%252e/", "/a//b/", "/é/", "/%c3%a9/", "/%ff/", "/%zz/", "/%", "/a b/", "/a%20b/", "/\x00/", "/" + strings.Repeat("a", 5000) + "/",
	}, s.Hostile...)
	for _, path := range paths {
		r, err := s.Protocol.Route(s.Place, ecosystem.Request{Path: path})
		if !errors.Is(err, fault.ErrInvalid) && !errors.Is(err, fault.ErrNotFound) {
			t.Errorf("Route(%q) = %+v, %v; want a refusal", path, r, err)
		}
	}
}

func (s Sample) roundTrip(t *testing.T) {
	ix, rows := s.parsed(t)
	verdicts := make([]ecosystem.Verdict, len(ix.Files))
	for i := range verdicts {
		verdicts[i].Allowed = true
	}
	for _, accept := range s.Accept {
		form := s.Protocol.Form(accept)
		page, err := s.render(ix, rows, verdicts, form)
		if err != nil {
			t.Fatalf("Render as %s: %v", form, err)
		}
		again, err := s.render(ix, rows, verdicts, form)
		if err != nil || !bytes.Equal(page, again) {
			t.Errorf("Render as %s gave two different pages for one index (%v)", form, err)
		}
		back, err := s.Protocol.ParseIndex(s.Project, ecosystem.PageOf(s.URL, s.Protocol.ContentType(form), page), &ecosystem.MemoryRows{})
		if err != nil {
			t.Fatalf("a rendered page (%s) does not parse: %v\n%s", form, err, page)
		}
		if diff := cmp.Diff(identities(ix), identities(back)); diff != "" {
			t.Errorf("rendering as %s changed the files (-want +got):\n%s", form, diff)
		}
	}
	if _, err := s.render(ix, rows, verdicts[1:], s.Protocol.Form("")); err == nil {
		t.Error("Render took fewer verdicts than files")
	}
}

// identities are what no form may lose.
func identities(ix *ecosystem.Index) []string {
	var out []string
	for _, f := range ix.Files {
		out = append(out, f.Name+" "+f.Version+" "+f.Digest+" "+f.Path)
	}
	return out
}

func (s Sample) hostilePages(t *testing.T) {
	type page struct {
		contentType string
		body        []byte
	}
	for name, p := range map[string]page{
		"empty":         {s.ContentType, nil},
		"cut":           {s.ContentType, s.Body[:len(s.Body)/2]},
		"html":          {s.ContentType, []byte("<html><body>Please log in.</body></html>")},
		"captive":       {"text/html", []byte("<html><body><a href=\"/login\">Please log in.</a></body></html>")},
		"other type":    {"application/octet-stream", s.Body},
		"no type":       {"", s.Body},
		"invalid utf-8": {s.ContentType, bytes.Replace(s.Body, []byte(s.Project), append([]byte(s.Project), 0xff, 0xfe), 1)},
		"bom":           {s.ContentType, append([]byte("\xef\xbb\xbf"), s.Body...)},
		"deep":          {s.ContentType, bytes.Repeat([]byte(`{"a":[`), 100_000)},
		"twice":         {s.ContentType, append(append([]byte{}, s.Body...), s.Body...)},
	} {
		if slices.Contains(s.Harmless, name) {
			continue
		}
		ix, err := s.Protocol.ParseIndex(s.Project, ecosystem.PageOf(s.URL, p.contentType, p.body), &ecosystem.MemoryRows{})
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: ParseIndex = %+v, %v; want fault.ErrInvalid", name, ix, err)
		}
	}
}

func (s Sample) withheld(t *testing.T) {
	ix, rows := s.parsed(t)
	verdicts := make([]ecosystem.Verdict, len(ix.Files))
	verdicts[0].Allowed = true
	for i := range verdicts[1:] {
		verdicts[i+1].Reason = "the reason of this test"
	}
	for _, accept := range s.Accept {
		page, err := s.render(ix, rows, verdicts, s.Protocol.Form(accept))
		if err != nil {
			t.Fatal(err)
		}
		if !s.listsFile(page, ix.Files[0]) {
			t.Errorf("%s: the allowed file is gone:\n%s", accept, page)
		}
		if s.listsFile(page, ix.Files[1]) != bytes.Contains(page, []byte("the reason of this test")) {
			t.Errorf("%s: a withheld file must be listed with its reason or not at all:\n%s", accept, page)
		}
	}
}

// listsFile tells whether a page has a file, by its name or what stands for it.
func (s Sample) listsFile(page []byte, f ecosystem.File) bool {
	name := f.Name
	if s.Shown != nil {
		name = s.Shown(f)
	}
	return bytes.Contains(page, []byte(name))
}

func (s Sample) refusals(t *testing.T) {
	for _, cause := range []ecosystem.Cause{
		ecosystem.ByPolicy, ecosystem.Malformed, ecosystem.Unverified, ecosystem.Unreachable,
		ecosystem.Missing, ecosystem.Declined, ecosystem.NoSuchRoute, ecosystem.TooMuch,
	} {
		for _, route := range []ecosystem.RouteKind{"", ecosystem.RouteIndex, ecosystem.RouteFile, ecosystem.RouteSidecar} {
			a := s.Protocol.Refuse(ecosystem.Refusal{
				Route: route, Cause: cause, What: "x y 1.0", Reason: "because\r\nof \x1b[31mthis é", RequestID: "r-1",
			})
			if a.Status < 400 || a.Status > 499 || a.Status == 401 || a.Status == 407 {
				t.Errorf("%s on %q: status %d makes clients retry or ask for a password", cause, route, a.Status)
			}
			if cause == ecosystem.ByPolicy && (a.Status == 404 || a.Status == 410) {
				t.Errorf("%s on %q: status %d makes clients look elsewhere", cause, route, a.Status)
			}
			if a.Phrase == "" || a.Phrase != ecosystem.Line(a.Phrase) || len(a.Phrase) > 300 {
				t.Errorf("%s on %q: the reason phrase %q is not one short ASCII line", cause, route, a.Phrase)
			}
			if len(a.Body) == 0 || a.ContentType == "" {
				t.Errorf("%s on %q: no body", cause, route)
			}
		}
	}
	if s.Protocol.Ecosystem() == pkgref.Ecosystem("") {
		t.Error("the protocol names no ecosystem")
	}
}
