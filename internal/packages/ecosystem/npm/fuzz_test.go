package npm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm"
)

// FuzzRoute: what is routed is canonical, and writing never is.
func FuzzRoute(f *testing.F) {
	for _, s := range []string{
		"/foo", "/@s%2ffoo", "/@s/foo/1.0.0", "/foo/-/foo-1.0.0.tgz", "/@s/foo/-/@s/foo-1.0.0.tgz", "/-/npm/v1/attestations/@s%2ffoo@1.0.0",
		"/-/package/@s%2ffoo/dist-tags", "/-/npm/v1/security/audits", "/-/ping", "/%2e%2e/", "//", "/@s%2f..%2ffoo",
	} {
		f.Add("GET", s, "")
		f.Add("PUT", s, "write=true")
	}
	f.Fuzz(func(t *testing.T, method, path, query string) {
		r, err := npm.New().Route(place(), ecosystem.Request{Method: method, Path: path, Query: query})
		if err != nil {
			if !errors.Is(err, fault.ErrInvalid) && !errors.Is(err, fault.ErrNotFound) {
				t.Errorf("%q: %v is no refusal", path, err)
			}
			return
		}
		if method != "" && method != "GET" && method != "HEAD" && r.Kind != ecosystem.RouteAnswered {
			t.Errorf("%s %q has the route %+v", method, path, r)
		}
		if r.Project != "" && !pkgref.IsCanonicalName(pkgref.Node, r.Project) {
			t.Errorf("%q gave the project %q", path, r.Project)
		}
		if r.Version != "" {
			if _, err := pkgref.CanonicalVersion(pkgref.Node, r.Version); err != nil {
				t.Errorf("%q gave the version %q", path, r.Version)
			}
		}
		if r.Kind == ecosystem.RouteFile && (strings.ContainsAny(r.Path, "\\%\x00") || strings.Contains(r.Path, "/../") || !strings.HasSuffix(r.Path, "/"+r.File)) {
			t.Errorf("%q gave the file %q at %q", path, r.File, r.Path)
		}
	})
}

// FuzzParseIndex: whatever is listed can be asked for, and rendering loses and
// invents nothing.
func FuzzParseIndex(f *testing.F) {
	f.Add([]byte(document(manifest("1.0.0", `,"dependencies":{"a":"^1"},"scripts":{"install":"x"}`), manifest("2.0.0-rc.1", ""))))
	f.Add([]byte(`{"versions":{` + manifest("1.0.0", `,"bin":["x"],"_x":1`) + `},"time":{"1.0.0":"2020-01-01T00:00:00Z","modified":"x"},"dist-tags":{"latest":"1.0.0","a":"2.0.0"},"name":"foo","license":{"a":[1,2]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		ix, rows, err := parse(t, string(body))
		if err != nil {
			if !errors.Is(err, fault.ErrInvalid) && !errors.Is(err, fault.ErrNotFound) {
				t.Errorf("%v is no refusal", err)
			}
			return
		}
		p := npm.New()
		for _, file := range ix.Files {
			r, err := p.Route(ecosystem.Place{Files: true}, ecosystem.Request{Path: file.Path})
			if err != nil || r.File != file.Name || r.Project != "foo" || r.Version != file.Version {
				t.Errorf("a listed file can't be asked for: %+v: %+v, %v", file, r, err)
			}
			row, err := ecosystem.Slice(rows, file.Manifest)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Listed(file, row); err != nil {
				t.Errorf("a row can't be read: %v\n%s", err, row)
			}
		}
		if len(ix.Files) == 0 {
			return
		}
		for _, form := range []ecosystem.Form{"full", "abbreviated"} {
			page := rendered(t, ix, rows, form, "")
			back, backRows, err := parse(t, page)
			if err != nil || len(back.Files) != len(ix.Files) {
				t.Fatalf("the rendered page lost files (%v):\n%s", err, page)
			}
			for i, file := range back.Files {
				if file.Digest != ix.Files[i].Digest || file.Name != ix.Files[i].Name || file.Path != ix.Files[i].Path || file.Scripts != ix.Files[i].Scripts {
					t.Errorf("rendering changed %+v to %+v", ix.Files[i], file)
				}
			}
			if again := rendered(t, back, backRows, form, ""); again != page {
				t.Errorf("a page that was rendered and read renders otherwise:\n%s\n%s", page, again)
			}
		}
	})
}

// FuzzInspect: hostile packages are refused or described, nothing else. Hostile
// archives are the archive package's to try.
func FuzzInspect(f *testing.F) {
	const row = `{"name":"foo","version":"1.0.0","dependencies":{"a":"1"},"bin":{"foo":"x"},"hasInstallScript":true}`
	f.Add([]byte(`{"name":"foo","version":"1.0.0","dependencies":{"a":"1"},"bin":"x","scripts":{"install":"x"}}`), []byte(row), "node_modules/@s/x/package.json", []byte(`{"name":"y","version":"1.0.0"}`))
	f.Add([]byte("\ufeff"+`{"name":"foo","name":"foo","version":"v1.0.0","peerDependencies":{},"directories":{"bin":"./x"}}`), []byte(`{}`), "./binding.gyp", []byte{})
	f.Add([]byte(`{"optionalDependencies":{"a":"npm:b@1"},"name":"foo","version":"1.0.0","gypfile":false}`), []byte(row), "package.json", []byte(`{}`))
	f.Fuzz(func(t *testing.T, document, row []byte, path string, content []byte) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		for _, file := range []struct {
			path    string
			content []byte
		}{{"package/package.json", document}, {"package/" + path, content}} {
			if w.WriteHeader(&tar.Header{Name: file.path, Size: int64(len(file.content)), Mode: 0o644, Typeflag: tar.TypeReg}) != nil {
				return // not a path that a tar archive can have
			}
			if _, err := w.Write(file.content); err != nil {
				return // a folder, by its path
			}
		}
		if err := errors.Join(w.Close(), z.Close()); err != nil {
			t.Fatal(err)
		}
		got, err := inspect(row, b.Bytes())
		if err != nil {
			if !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("%v is no refusal", err)
			}
			return
		}
		if got.Name != "foo" || got.Version != "1.0.0" {
			t.Errorf("it is described as %s %s", got.Name, got.Version)
		}
		for _, r := range got.Requirements {
			if !pkgref.IsCanonicalName(pkgref.Node, r.Name) || r.Specifier != ecosystem.Line(r.Specifier) {
				t.Errorf("the requirement %+v", r)
			}
		}
		for _, b := range got.Bundled {
			if !pkgref.IsCanonicalName(pkgref.Node, b.Name) {
				t.Errorf("the bundled package %+v", b)
			}
		}
	})
}
