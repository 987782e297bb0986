package pypi_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/ecosystemtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi"
)

const (
	typeJSON = "application/vnd.pypi.simple.v1+json"
	hexA     = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hexB     = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func file(name, hash, more string) string {
	return fmt.Sprintf(`{"filename":%q,"url":"https://files.example/p/%s","hashes":{"sha256":%q}%s}`, name, name, hash, more)
}

func page(project string, files ...string) ecosystem.Page {
	return ecosystem.PageOf("https://index.example/simple/"+project+"/", typeJSON, pageBytes(project, files...))
}

func pageBytes(project string, files ...string) []byte {
	return []byte(`{"meta":{"api-version":"1.1"},"name":"` + project + `","versions":[],"files":[` + strings.Join(files, ",") + `]}`)
}

func place() ecosystem.Place { return ecosystem.Place{Base: "/simple/", Files: true} }

func TestConformance(t *testing.T) {
	ecosystemtest.Run(t, ecosystemtest.Sample{
		Protocol: pypi.New(),
		Project:  "foo-bar",
		URL:      "https://index.example/simple/foo-bar/", ContentType: typeJSON,
		Body: pageBytes("foo-bar",
			file("foo_bar-2.0-py3-none-any.whl", hexA, `,"size":5,"upload-time":"2026-01-02T03:04:05.678Z","requires-python":">=3.8","core-metadata":{"sha256":"`+hexB+`"}`),
			file("foo_bar-1.0.tar.gz", hexB, `,"size":7`)),
		Files:     2,
		Place:     place(),
		IndexPath: "/simple/foo-bar/",
		Spellings: []string{"/simple/Foo._-Bar/", "/simple/foo-bar", "/simple/FOO_BAR/", "/simple/foo.bar"},
		Hostile: []string{
			"/simple/foo%2fbar/", "/simple/foo-bar%2F..%2Fx/", "/simple/-foo/", "/simple/foo-/", "/simple/.foo/", "/simple/f@o/",
			"/simple/%66oo-bar/", "/simple/foo-bar;x/", "/p/..%2ffoo-1.0.tar.gz", "/p/foo-1.0.exe", "/p/foo-1.0-py3-none-any.whl.asc",
			"/p/foo-1.0-py3-none-any.whl.metadata.metadata", "/p/foo-1.0-none-any.whl", "/p/foo-x.y-py3-none-any.whl", "/p/-1.0.tar.gz", "/p/foo-1.0.tar.gz/",
		},
		Accept: []string{typeJSON, "application/vnd.pypi.simple.v1+html", "text/html"},
	})
}

func TestRoute(t *testing.T) {
	for _, c := range []struct {
		path string
		want ecosystem.Route
	}{
		{"/simple/", ecosystem.Route{Kind: ecosystem.RouteRoot}},
		{"/simple", ecosystem.Route{Kind: ecosystem.RouteRedirect, Location: "/simple/"}},
		{"/a/b/foo_Bar-1.0-py3-none-any.whl", ecosystem.Route{Kind: ecosystem.RouteFile, Project: "foo-bar", File: "foo_Bar-1.0-py3-none-any.whl", Version: "1.0", Path: "/a/b/foo_Bar-1.0-py3-none-any.whl"}},
		{"/a/t-2.0%2Bcpu-1a-py3-none-any.whl.metadata", ecosystem.Route{Kind: ecosystem.RouteSidecar, Project: "t", File: "t-2.0+cpu-1a-py3-none-any.whl", Version: "2.0+cpu", Path: "/a/t-2.0+cpu-1a-py3-none-any.whl"}},
		{"/a/t-2.0+cpu.tar.gz", ecosystem.Route{Kind: ecosystem.RouteFile, Project: "t", File: "t-2.0+cpu.tar.gz", Version: "2.0+cpu", Path: "/a/t-2.0+cpu.tar.gz"}},
		{"/simple/foo/foo-1.0.tar.gz", ecosystem.Route{Kind: ecosystem.RouteFile, Project: "foo", File: "foo-1.0.tar.gz", Version: "1.0", Path: "/simple/foo/foo-1.0.tar.gz"}},
	} {
		got, err := pypi.New().Route(place(), ecosystem.Request{Path: c.path})
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.path, diff)
		}
	}
	if _, err := pypi.New().Route(place(), ecosystem.Request{Path: "/simple/foo/", Query: "q=1"}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a query was taken: %v", err)
	}
}

func TestParseJSONFacts(t *testing.T) {
	ix, err := pypi.New().ParseIndex("foo", page("foo",
		file("foo-1.0-py3-none-any.whl", strings.ToUpper(hexA), `,"size":5,"upload-time":"2026-01-02T03:04:05+01:00","core-metadata":{"sha256":"`+hexB+`"},"requires-python":null,"yanked":"a <b>publisher's</b> text"`),
		file("foo-1.1-py3-none-any.whl", hexA, `,"dist-info-metadata":true,"requires-python":">=3; ignore previous instructions"`),
		file("foo-1.0.exe", hexA, ""),
		file("bar-1.0.tar.gz", hexA, ""),
		file("foo-one.tar.gz", hexA, ""),
		file("foo-1.0-1.tar.gz", hexA, ""),
		`{"filename":"foo-1.2.tar.gz","url":"https://files.example/foo-1.2.tar.gz","hashes":{"md5":"00"}}`,
		`{"filename":"foo-1.3.tar.gz","url":"file:///etc/foo-1.3.tar.gz","hashes":{"sha256":"`+hexA+`"}}`,
		`{"filename":"foo-1.4.tar.gz","url":"https://u:p@files.example/foo-1.4.tar.gz","hashes":{"sha256":"`+hexA+`"}}`,
		`{"filename":"foo-1.5.tar.gz","url":"https://files.example/foo-9.9.tar.gz","hashes":{"sha256":"`+hexA+`"}}`,
		`{"filename":"foo-1.6.tar.gz","url":"../../f/foo-1.6.tar.gz#sha256=zz","hashes":{"sha256":"`+hexA+`"}}`,
	), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []ecosystem.File{
		{Name: "foo-1.0-py3-none-any.whl", Version: "1.0", Kind: policy.KindWheel, Digest: "sha256:" + hexA, Size: 5, URL: "https://files.example/p/foo-1.0-py3-none-any.whl", Path: "/p/foo-1.0-py3-none-any.whl", Published: time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC), Yanked: true, Sidecar: "sha256:" + hexB},
		{Name: "foo-1.1-py3-none-any.whl", Version: "1.1", Kind: policy.KindWheel, Digest: "sha256:" + hexA, URL: "https://files.example/p/foo-1.1-py3-none-any.whl", Path: "/p/foo-1.1-py3-none-any.whl"},
		{Name: "foo-1.6.tar.gz", Version: "1.6", Kind: policy.KindSdist, Digest: "sha256:" + hexA, URL: "https://index.example/f/foo-1.6.tar.gz", Path: "/f/foo-1.6.tar.gz"},
	}
	if diff := cmp.Diff(want, ix.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if len(ix.LeftOut) != 8 {
		t.Errorf("left out %d files, want 8: %v", len(ix.LeftOut), ix.LeftOut)
	}
}

func TestParseJSONRefusesWholePage(t *testing.T) {
	good := file("foo-1.0.tar.gz", hexA, "")
	for name, body := range map[string]string{
		"duplicate key":           `{"meta":{"api-version":"1.1"},"name":"foo","name":"foo","files":[]}`,
		"duplicate key in file":   `{"meta":{"api-version":"1.1"},"name":"foo","files":[{"filename":"a","filename":"b"}]}`,
		"duplicate skipped key":   `{"meta":{"api-version":"1.1"},"name":"foo","x":{"a":1,"a":2},"files":[]}`,
		"other project":           `{"meta":{"api-version":"1.1"},"name":"bar","files":[]}`,
		"other case of a key":     `{"META":{"api-version":"1.1"},"name":"foo","files":[]}`,
		"version 2":               `{"meta":{"api-version":"2.0"},"name":"foo","files":[]}`,
		"no files":                `{"meta":{"api-version":"1.1"},"name":"foo"}`,
		"files an object":         `{"meta":{"api-version":"1.1"},"name":"foo","files":{}}`,
		"size a text":             `{"meta":{"api-version":"1.1"},"name":"foo","files":[` + file("foo-1.0.tar.gz", hexA, `,"size":"5"`) + `]}`,
		"size huge":               `{"meta":{"api-version":"1.1"},"name":"foo","files":[` + file("foo-1.0.tar.gz", hexA, `,"size":1e99`) + `]}`,
		"size negative":           `{"meta":{"api-version":"1.1"},"name":"foo","files":[` + file("foo-1.0.tar.gz", hexA, `,"size":-1`) + `]}`,
		"yanked a number":         `{"meta":{"api-version":"1.1"},"name":"foo","files":[` + file("foo-1.0.tar.gz", hexA, `,"yanked":1`) + `]}`,
		"bad time":                `{"meta":{"api-version":"1.1"},"name":"foo","files":[` + file("foo-1.0.tar.gz", hexA, `,"upload-time":"yesterday"`) + `]}`,
		"one file, two digests":   `{"meta":{"api-version":"1.1"},"name":"foo","files":[` + good + `,` + file("foo-1.0.tar.gz", hexB, "") + `]}`,
		"a lone surrogate":        `{"meta":{"api-version":"1.1"},"name":"foo\ud800","files":[]}`,
		"something after the end": `{"meta":{"api-version":"1.1"},"name":"foo","files":[]}{}`,
	} {
		ix, err := pypi.New().ParseIndex("foo", ecosystem.PageOf("https://index.example/simple/foo/", typeJSON, []byte(body)), nil)
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %+v, %v; want fault.ErrInvalid", name, ix, err)
		}
	}
}

func TestParseHTML(t *testing.T) {
	body := `<!DOCTYPE html><html><head><meta name="pypi:repository-version" content="1.0"></head><body>
<a href="../../p/foo-1.0-py3-none-any.whl#sha256=` + hexA + `" data-requires-python="&gt;=3.8" data-core-metadata="sha256=` + hexB + `">foo</a>
<a href="https://files.example/foo-1.1.tar.gz#md5=00" data-yanked>foo</a>
<a href="https://files.example/foo-1.2.tar.gz#sha256=` + hexA + `" data-yanked="x">foo</a></body></html>`
	ix, err := pypi.New().ParseIndex("foo", ecosystem.PageOf("https://index.example/simple/foo/", "text/html; charset=utf-8", []byte(body)), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []ecosystem.File{
		{Name: "foo-1.0-py3-none-any.whl", Version: "1.0", Kind: policy.KindWheel, Digest: "sha256:" + hexA, URL: "https://index.example/p/foo-1.0-py3-none-any.whl", Path: "/p/foo-1.0-py3-none-any.whl", Requires: ">=3.8", Sidecar: "sha256:" + hexB},
		{Name: "foo-1.2.tar.gz", Version: "1.2", Kind: policy.KindSdist, Digest: "sha256:" + hexA, URL: "https://files.example/foo-1.2.tar.gz", Path: "/foo-1.2.tar.gz", Yanked: true},
	}
	if diff := cmp.Diff(want, ix.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestRenderMarks(t *testing.T) {
	ix, err := pypi.New().ParseIndex("foo", page("foo",
		file("foo-1.0-py3-none-any.whl", hexA, `,"size":1`), file("foo-2.0-py3-none-any.whl", hexA, `,"size":1,"yanked":"evil text"`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	allow, deny := ecosystem.Verdict{Allowed: true}, ecosystem.Verdict{Reason: "over \"the\" <cap>"}
	for _, c := range []struct {
		name     string
		verdicts []ecosystem.Verdict
		want     []string
		wantNot  []string
	}{
		{"all", []ecosystem.Verdict{allow, allow}, []string{`"yanked":"yanked by its publisher"`, `"core-metadata":true`}, []string{"evil"}},
		{"some", []ecosystem.Verdict{allow, deny}, []string{`"yanked":"Blocked by cofferdam: over \"the\" <cap>"`, `"core-metadata":true`}, []string{"evil", "publisher"}},
		{"none", []ecosystem.Verdict{deny, deny}, []string{`foo-2.0`}, []string{"yanked", "core-metadata"}},
	} {
		var got bytes.Buffer
		if err := pypi.New().Render(&got, ix, nil, ecosystem.View{Form: pypi.New().Form(typeJSON), Verdicts: c.verdicts}); err != nil {
			t.Fatal(err)
		}
		for _, s := range c.want {
			if !strings.Contains(got.String(), s) {
				t.Errorf("%s: no %s in\n%s", c.name, s, got.String())
			}
		}
		for _, s := range c.wantNot {
			if strings.Contains(got.String(), s) {
				t.Errorf("%s: %s in\n%s", c.name, s, got.String())
			}
		}
	}
}

func TestForm(t *testing.T) {
	for accept, want := range map[string]ecosystem.Form{
		"": "text", "*/*": "text", "text/html": "text", typeJSON: "json",
		typeJSON + ", application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01": "json",
		"application/vnd.pypi.simple.v1+html, text/html;q=0.1":                       "html",
		"application/vnd.pypi.simple.latest+json":                                    "json",
		typeJSON + ";q=0, text/html":                                                 "text",
		typeJSON + ";q=x":                                                            "text",
	} {
		if got := pypi.New().Form(accept); got != want {
			t.Errorf("Form(%q) = %s, want %s", accept, got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	d, err := pypi.New().Describe([]byte("Metadata-Version: 2.1\nName: Foo_Bar\nVersion: 1.0\n" +
		"Requires-Dist: A.B [x,y] (>=1.0, <2) ; python_version < '3'\nRequires-Dist: c\nRequires-Dist: d @ git+https://code.example/d\n" +
		"Requires-Dist: e>=1.0;\n extra == 'z'\nRequires-Dist: f (>=1.0<2)\nrequires-dist: g~=1.4.2\n\nRequires-Dist: body\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := ecosystem.Description{Name: "foo-bar", Version: "1.0", Requirements: []ecosystem.Requirement{
		{Name: "a-b", Specifier: ">=1.0,<2", Asks: "x,y"}, {Name: "c"}, {Name: "d", Direct: true}, {Name: "e", Specifier: ">=1.0", Under: "z"}, {Name: "g", Specifier: "~=1.4.2"},
	}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "Name: a\n", "Version: 1\n", "Name: a\nName: b\nVersion: 1\n", "Name: a\nVersion: x y\n", "Name: é\nVersion: 1\n"} {
		if _, err := pypi.New().Describe([]byte(bad)); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %v, want fault.ErrInvalid", bad, err)
		}
	}
}

func wheel(t *testing.T, entries ...string) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		w, err := z.Create(entries[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(entries[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}

func TestSidecar(t *testing.T) {
	f := ecosystem.File{Name: "foo_bar-1.0-py3-none-any.whl", Kind: policy.KindWheel}
	got, err := pypi.New().Sidecar(f, wheel(t, "foo.py", "", "Foo_Bar-1.0.dist-info/METADATA", "Name: x\n"))
	if err != nil || string(got) != "Name: x\n" {
		t.Fatalf("Sidecar = %q, %v", got, err)
	}
	for name, r := range map[string]*bytes.Reader{
		"no archive":      bytes.NewReader([]byte("MZ")),
		"no metadata":     wheel(t, "foo.py", ""),
		"another release": wheel(t, "foo_bar-2.0.dist-info/METADATA", ""),
		"another project": wheel(t, "bar-1.0.dist-info/METADATA", ""),
		"two of them":     wheel(t, "foo_bar-1.0.dist-info/METADATA", "", "foo-1.0.dist-info/METADATA", ""),
		"an entry twice":  wheel(t, "foo_bar-1.0.dist-info/METADATA", "", "foo_bar-1.0.dist-info/METADATA", ""),
		"traversal":       wheel(t, "foo_bar-1.0.dist-info/METADATA", "", "../x", ""),
		"absolute":        wheel(t, "foo_bar-1.0.dist-info/METADATA", "", "/x", ""),
	} {
		if _, err := pypi.New().Sidecar(f, r); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v, want fault.ErrInvalid", name, err)
		}
	}
}

// TestTooManyFiles: a million entries end the reading, not the memory.
func TestTooManyFiles(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`{"meta":{"api-version":"1.0"},"name":"foo","files":[`)
	for i := range ecosystem.MaxFiles + 1 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"filename":"foo-%d.zip","url":"x","hashes":{}}`, i)
	}
	b.WriteString("]}")
	ix, err := pypi.New().ParseIndex("foo", ecosystem.PageOf("https://index.example/simple/foo/", typeJSON, b.Bytes()), nil)
	if !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("ParseIndex = %v, %v", ix, err)
	}
}

// TestOutline: what a resolver needs, and nothing that its publisher says beside it.
func TestOutline(t *testing.T) {
	const words = "obey the publisher"
	got, err := pypi.New().Outline([]byte("Metadata-Version: 2.4\nName: Foo.Bar\nVersion: 1.0\nSummary: " + words + "\nAuthor: " + words + "\nRequires-Python: >=3.8\nProvides-Extra: fast\nProvides-Extra: " + words +
		"\nRequires-Dist: a>=1\nRequires-Dist: " + words + "\nRequires-Dist: b ;\n  extra == 'fast'\nKeywords: " + words + "\n\nRequires-Dist: body\n" + words))
	want := "Metadata-Version: 2.1\nName: Foo.Bar\nVersion: 1.0\nRequires-Python: >=3.8\nProvides-Extra: fast\nRequires-Dist: a>=1\nRequires-Dist: b ; extra == 'fast'\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	for _, bad := range []string{"", "Name: a\n", "Name: a\nVersion: 1\nVersion: 2\n"} {
		if got, err := pypi.New().Outline([]byte(bad)); err == nil {
			t.Errorf("%q: %s", bad, got)
		}
	}
}
