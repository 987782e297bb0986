package golang_test

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"

	"golang.org/x/mod/module"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang/golangtest"
)

// FuzzRoute: what is understood is canonical, and asking the upstream for it
// is asking for the same path.
func FuzzRoute(f *testing.F) {
	for _, s := range []string{
		"/example.com/!foo/@v/list", "/example.com/foo/@latest", "/example.com/foo/@v/v1.0.0-!r!c.zip", "/example.com/foo/@v/main.info", "/example.com/%21foo/@v/v2.0.0%2Bincompatible.mod",
		"/sumdb/sum.example/supported", "/sumdb/sum.example/lookup/example.com/!foo@v1.0.0", "/sumdb/sum.example/tile/8/0/x001/234.p/5", "/sumdb/sum.example/db/latest", "/a.b/@v/../@v/list",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		const base = "https://index.example/"
		p := golang.New()
		r, err := p.Route(place(), ecosystem.Request{Path: path})
		if err != nil {
			return
		}
		if r.Project != "" && !pkgref.IsCanonicalName(pkgref.Go, r.Project) {
			t.Errorf("%q gave the module %q", path, r.Project)
		}
		if r.Version != "" && !r.Query && module.Check(r.Project, r.Version) != nil {
			t.Errorf("%q gave the version %q of %q", path, r.Version, r.Project)
		}
		var asked string
		switch r.Kind {
		case ecosystem.RouteIndex:
			asked = p.IndexAsk(base, r.Project).URL
		case ecosystem.RouteFile:
			file, err := p.Addressed(base, r)
			if err != nil || file.Path != r.Path || file.Name != r.File {
				t.Errorf("%q is the file %+v, addressed as %+v, %v", path, r, file, err)
			}
			asked = file.URL
		case ecosystem.RouteAttachment:
			asked = p.AttachmentAsk(base, r).URL
		case ecosystem.RoutePass:
			asked = p.PassAsk(base, r).URL
		case ecosystem.RouteAnswered:
			return
		default:
			t.Fatalf("%q gave a route of the kind %q", path, r.Kind)
		}
		want, err := ecosystem.PathOf(path)
		if err != nil {
			t.Fatalf("%q was taken: %v", path, err)
		}
		got, err := ecosystem.PathOf(strings.TrimPrefix(asked, "https://index.example"))
		if err != nil || got != want {
			t.Errorf("for %q the upstream is asked for %q (%v)", path, asked, err)
		}
	})
}

// FuzzParseIndex: whatever is listed can be asked for, and rendering loses and
// invents nothing.
func FuzzParseIndex(f *testing.F) {
	f.Add([]byte("v1.0.0\nv1.1.0-rc.1 2020-01-01T00:00:00Z\r\nv2.0.0+incompatible\n"))
	f.Add([]byte("v0.0.0-20200101000000-0123456789ab\nv1\nlatest\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		p := golang.New()
		ix, err := p.ParseIndex("example.com/Foo", ecosystem.PageOf("https://index.example/example.com/!foo/@v/list", typeText, body), nil)
		if err != nil {
			return
		}
		view := ecosystem.View{Form: p.Form("")}
		for _, file := range ix.Files {
			view.Verdicts = append(view.Verdicts, ecosystem.Verdict{Allowed: true})
			r, err := p.Route(ecosystem.Place{Files: true}, ecosystem.Request{Path: file.Path})
			if err != nil || r.Project != "example.com/Foo" || r.Version != file.Version || r.File != file.Name {
				t.Errorf("a listed file can't be asked for: %+v: %+v, %v", file, r, err)
			}
		}
		var out bytes.Buffer
		if err := p.Render(&out, ix, nil, view); err != nil {
			t.Fatal(err)
		}
		back, err := p.ParseIndex("example.com/Foo", ecosystem.PageOf("https://index.example/example.com/!foo/@v/list", typeText, out.Bytes()), nil)
		if err != nil || len(back.Files) != len(ix.Files) || len(back.LeftOut) > 0 {
			t.Fatalf("the rendered list lost versions (%v):\n%s", err, out.Bytes())
		}
	})
}

// FuzzAttachment: what is passed on is what was understood, and is understood
// again.
func FuzzAttachment(f *testing.F) {
	f.Add([]byte(`{"Version":"v1.0.0","Time":"2026-01-02T03:04:05.678+01:00"}`), true)
	f.Add([]byte("module example.com/foo\nrequire (\n\texample.com/a v1.0.0 // indirect\n)\nreplace a => b\n"), false)
	f.Fuzz(func(t *testing.T, body []byte, isInfo bool) {
		r := modRoute("v1.0.0")
		if isInfo {
			r = infoRoute("main", true)
		}
		a, err := golang.New().Attachment(r, body)
		if err != nil {
			if !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("%v is no fault of the answer", err)
			}
			return
		}
		for _, q := range a.Requirements {
			if _, err := pkgref.New(pkgref.Go, q.Name, strings.TrimPrefix(q.Specifier, ">=")); err != nil || q.Direct {
				t.Errorf("requirement %+v: %v", q, err)
			}
		}
		if module.Check("example.com/foo", a.Version) != nil {
			t.Errorf("the version %q", a.Version)
		}
		again, err := golang.New().Attachment(r, a.Body)
		if err != nil || !bytes.Equal(again.Body, a.Body) || again.Version != a.Version {
			t.Errorf("what is passed on is read as %+v, %v", again, err)
		}
	})
}

// FuzzInspect: a zip that is accepted has one sum, and it is of its release.
func FuzzInspect(f *testing.F) {
	f.Add(golangtest.New(f, "example.com/foo", "v1.0.0", "example.com/a v1.0.0").Zip)
	f.Add(golangtest.Zip(f, [2]string{"example.com/foo@v1.0.0/vendor/modules.txt", "# example.com/a v1.0.0\n"}, [2]string{"example.com/foo@v1.0.0/vendor/example.com/a/a.go", ""}))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := inspect("v1.0.0", data)
		if err != nil {
			if !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("%v is no fault of the zip", err)
			}
			return
		}
		if module.Check(in.Name, in.Version) != nil || in.Version != "v1.0.0" {
			t.Errorf("inspected as %+v", in)
		}
		if _, err := golang.New().SumFile(ecosystem.File{}, bytes.NewReader(data)); err != nil {
			t.Errorf("an accepted zip has no sum: %v", err)
		}
	})
}

// FuzzRecord: nothing but the truth is attested, whatever a lookup's answer is.
func FuzzRecord(f *testing.F) {
	ms := []golangtest.Module{
		golangtest.Pack(f, "example.com/Foo", "v1.0.0", [2]string{"a.go", ""}), golangtest.Pack(f, "example.com/Foo", "v1.1.0", [2]string{"a.go", ""}),
	}
	d := golangtest.NewDatabase(f, "sum.example", ms...)
	f.Add(d.Record(1, d.Head(2)))
	f.Add(d.Record(0, d.Head(1)))
	f.Add([]byte("-1\nexample.com/Foo v1.1.0 h1:x\n\n"))
	honest := lend(d).answers
	f.Fuzz(func(t *testing.T, answer []byte) {
		l := &lent{verifier: d.Verifier, answers: maps.Clone(honest), config: map[string][]byte{}, cache: map[string][]byte{}}
		l.set(lookup1, answer)
		got, err := golang.New().Attest(t.Context(), l, ms[1].Path, ms[1].Version)
		if err == nil && (got.File != ms[1].ZipSum || got.Attachment != ms[1].ModSum || got.Position != 1 || got.Size < 2) {
			t.Errorf("%q attests %+v", answer, got)
		}
	})
}
