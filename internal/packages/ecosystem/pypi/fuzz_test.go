package pypi_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi"
)

func FuzzRoute(f *testing.F) {
	for _, s := range []string{"/simple/foo/", "/simple/Foo", "/p/foo-1.0-py3-none-any.whl", "/p/foo-1%2B0.tar.gz.metadata", "/%2e%2e/", "/simple/a/../b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		r, err := pypi.New().Route(place(), ecosystem.Request{Path: path})
		if err != nil {
			return
		}
		if r.Project != "" && !pkgref.IsCanonicalName(pkgref.Python, r.Project) {
			t.Errorf("%q gave the project %q", path, r.Project)
		}
		if r.Kind == ecosystem.RouteFile && (strings.ContainsAny(r.File, "/\\%\x00") || strings.Contains(r.Path, "/../") || !strings.HasSuffix(r.Path, "/"+r.File)) {
			t.Errorf("%q gave the file %q at %q", path, r.File, r.Path)
		}
		if r.Kind == ecosystem.RouteRedirect {
			again, err := pypi.New().Route(place(), ecosystem.Request{Path: r.Location})
			if err != nil || again.Kind == ecosystem.RouteRedirect {
				t.Errorf("%q redirects to %q, which is %+v, %v", path, r.Location, again, err)
			}
		}
	})
}

// fuzzIndex checks what must hold of every page that is accepted: whatever is
// listed can be asked for, and rendering loses and invents nothing.
func fuzzIndex(t *testing.T, contentType string, body []byte) {
	t.Helper()
	p := pypi.New()
	ix, err := p.ParseIndex("foo", ecosystem.PageOf("https://index.example/simple/foo/", contentType, body), nil)
	if err != nil {
		return
	}
	verdicts := make([]ecosystem.Verdict, len(ix.Files))
	for i, file := range ix.Files {
		verdicts[i].Allowed = i%2 == 0
		r, err := p.Route(ecosystem.Place{Files: true}, ecosystem.Request{Path: file.Path})
		if err != nil || r.File != file.Name || r.Project != "foo" || r.Version != file.Version {
			t.Errorf("a listed file can't be asked for: %+v: %+v, %v", file, r, err)
		}
	}
	for _, accept := range []string{typeJSON, "text/html"} {
		var out bytes.Buffer
		form := p.Form(accept)
		if err := p.Render(&out, ix, nil, ecosystem.View{Form: form, Verdicts: verdicts}); err != nil {
			t.Fatal(err)
		}
		back, err := p.ParseIndex("foo", ecosystem.PageOf("https://index.example/simple/foo/", p.ContentType(form), out.Bytes()), nil)
		if err != nil || len(back.Files) != len(ix.Files) {
			t.Fatalf("the rendered page lost files (%v):\n%s", err, out.Bytes())
		}
		for i, file := range back.Files {
			if file.Digest != ix.Files[i].Digest || file.Name != ix.Files[i].Name {
				t.Errorf("rendering changed %+v to %+v", ix.Files[i], file)
			}
		}
	}
}

func FuzzIndexJSON(f *testing.F) {
	f.Add(pageBytes("foo", file("foo-1.0-py3-none-any.whl", hexA, `,"size":1,"yanked":"x","core-metadata":true`), file("foo-1.0.tar.gz", hexB, "")))
	f.Add(pageBytes("foo", file("foo-1.0-1.tar.gz", hexA, ""), file("FOO-2.tar.gz", hexB, "")))
	f.Add([]byte(`{"meta":{"api-version":"1.0"},"name":"foo","files":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) { fuzzIndex(t, typeJSON, body) })
}

func FuzzIndexHTML(f *testing.F) {
	f.Add([]byte(`<meta name="pypi:repository-version" content="1.0"><a href="foo-1.0.tar.gz#sha256=` + hexA + `" data-yanked="&lt;">x</a>`))
	f.Fuzz(func(t *testing.T, body []byte) { fuzzIndex(t, "text/html", body) })
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte("Name: a\nVersion: 1\nRequires-Dist: b (>=1) ; extra == 'x'\n y\n\nbody"))
	f.Fuzz(func(t *testing.T, metadata []byte) {
		d, err := pypi.New().Describe(metadata)
		if err != nil {
			return
		}
		for _, r := range d.Requirements {
			if !pkgref.IsCanonicalName(pkgref.Python, r.Name) {
				t.Errorf("requirement %+v has a name that is not canonical", r)
			}
		}
	})
}
