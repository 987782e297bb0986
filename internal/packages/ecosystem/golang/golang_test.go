package golang_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/ecosystemtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang"
)

const typeText = "text/plain; charset=utf-8"

func place() ecosystem.Place { return ecosystem.Place{Base: "/", Files: true} }

func listPage(project, body string) ecosystem.Page {
	return ecosystem.PageOf("https://index.example/"+project+"/@v/list", typeText, []byte(body))
}

func TestConformance(t *testing.T) {
	ecosystemtest.Run(t, ecosystemtest.Sample{
		Protocol: golang.New(),
		Project:  "example.com/Foo/bar",
		URL:      "https://index.example/example.com/!foo/bar/@v/list", ContentType: "text/plain",
		Body:      []byte("v1.10.0\nv1.2.0\n"),
		Files:     2,
		Place:     place(),
		IndexPath: "/example.com/!foo/bar/@v/list",
		Hostile: []string{
			"/example.com/Foo/bar/@v/list", "/example.com/!!foo/@v/list", "/example.com/!1/@v/list", "/fmt/@v/list", "/@v/list", "/@latest", "/list",
			"/example.com/foo/@v/list/", "/example.com/foo/@v/", "/example.com/foo/@v", "/example.com/foo/@v/v1.0.0", "/example.com/foo/@v/v1.0.0.ziphash",
			"/example.com/foo/@v/v1.0.0.lock", "/example.com/foo/@v/master.zip", "/example.com/foo/@v/master.mod", "/example.com/foo/@v/v2.0.0.zip",
			"/example.com/foo/@v/v1.0.zip", "/example.com/foo/@v/V1.0.0.zip", "/example.com/foo/@v/v1.0.0-!r!c.zip/x", "/example.com/foo/@v/v1.0.0+x.zip",
			"/example.com/foo/@v/v1.0.0+incompatible.zip", "/example.com/foo/v2/@v/v2.0.0+incompatible.zip", "/example.com/foo/@v/-x.info", "/example.com/foo/@v/.info",
			"/example.com/foo/@v/a;b.info", "/example.com/foo/@v/a=b.info", "/example.com/foo/@v/" + strings.Repeat("a", 200) + ".info",
			"/example.com/foo/v1/@v/list", "/example.com/foo.git/@v/@v/list", "/example.com/con/@v/list", "/example.com/a~1/@v/list", "/example.com/@latest/@v/list",
			"/sumdb/sum.example", "/sumdb/sum.example/", "/sumdb/sum.example/x", "/sumdb/sum/latest", "/sumdb/SUM.example/latest", "/sumdb/sum.example/latest/x",
			"/sumdb/sum.example:443/latest", "/sumdb/u@sum.example/latest", "/sumdb/latest", "/sumdb/sum.example/lookup/", "/sumdb/sum.example/lookup/example.com/foo",
			"/sumdb/sum.example/lookup/example.com/foo@", "/sumdb/sum.example/lookup/example.com/foo@main", "/sumdb/sum.example/lookup/example.com/foo@v2.0.0",
			"/sumdb/sum.example/lookup/example.com/Foo@v1.0.0", "/sumdb/sum.example/lookup/example.com/foo@v1.0.0@v1.0.0", "/sumdb/sum.example/lookup/example.com/foo@v1.0.0/go.mod",
			"/sumdb/sum.example/tile/8/0/1", "/sumdb/sum.example/tile/8/0/x1/001", "/sumdb/sum.example/tile/8/0/001.p/0", "/sumdb/sum.example/tile/8/0/001.p/256",
			"/sumdb/sum.example/tile/8/data/001", "/sumdb/sum.example/tile/9/0/001", "/sumdb/sum.example/tile/8/-1/001", "/sumdb/sum.example/tile/8/0/000/001", "/sumdb/sum.example/tile/8/0/+01",
			"/sumdb/sum.example/x/../latest", "/sumdb/sum.example/.x/latest",
		},
		Accept: []string{"", "*/*"},
		Shown:  func(f ecosystem.File) string { return f.Version },
		// A list has no frame: a part of one, one twice and one of a file server
		// without types are lists, and it does not name its module.
		Harmless: []string{"empty", "cut", "twice", "other type", "invalid utf-8"},
	})
}

func TestRoute(t *testing.T) {
	const mod = "/goproxy/example.com/!foo"
	for _, c := range []struct {
		path string
		want ecosystem.Route
	}{
		{mod + "/@v/list", ecosystem.Route{Kind: ecosystem.RouteIndex, Project: "example.com/Foo"}},
		{mod + "/@latest", ecosystem.Route{Kind: ecosystem.RouteAttachment, Project: "example.com/Foo", File: "@latest", Version: "latest", Query: true, Path: mod + "/@latest"}},
		{mod + "/@v/v1.0.0-RC1.info", ecosystem.Route{}},
		{mod + "/@v/v1.0.0-!r!c1.info", ecosystem.Route{Kind: ecosystem.RouteAttachment, Project: "example.com/Foo", File: "v1.0.0-RC1.info", Version: "v1.0.0-RC1", Path: mod + "/@v/v1.0.0-!r!c1.info"}},
		{"/goproxy/example.com/%21foo/@v/v1.0.0-%21r.mod", ecosystem.Route{Kind: ecosystem.RouteAttachment, Project: "example.com/Foo", File: "v1.0.0-R.mod", Version: "v1.0.0-R", Path: mod + "/@v/v1.0.0-!r.mod"}},
		{mod + "/@v/main.info", ecosystem.Route{Kind: ecosystem.RouteAttachment, Project: "example.com/Foo", File: "main.info", Version: "main", Query: true, Path: mod + "/@v/main.info"}},
		{mod + "/@v/v1.2.info", ecosystem.Route{Kind: ecosystem.RouteAttachment, Project: "example.com/Foo", File: "v1.2.info", Version: "v1.2", Query: true, Path: mod + "/@v/v1.2.info"}},
		{mod + "/@v/v2.0.0.info", ecosystem.Route{Kind: ecosystem.RouteAttachment, Project: "example.com/Foo", File: "v2.0.0.info", Version: "v2.0.0", Query: true, Path: mod + "/@v/v2.0.0.info"}},
		{mod + "/@v/v2.0.0+incompatible.zip", ecosystem.Route{Kind: ecosystem.RouteFile, Project: "example.com/Foo", File: "v2.0.0+incompatible.zip", Version: "v2.0.0+incompatible", Path: mod + "/@v/v2.0.0+incompatible.zip"}},
		{mod + "/@v/v2.0.0%2Bincompatible.zip", ecosystem.Route{Kind: ecosystem.RouteFile, Project: "example.com/Foo", File: "v2.0.0+incompatible.zip", Version: "v2.0.0+incompatible", Path: mod + "/@v/v2.0.0+incompatible.zip"}},
		{"/goproxy/sumdb/sum.example/supported", ecosystem.Route{Kind: ecosystem.RouteAnswered, Log: "sum.example", File: "sum.example/supported", Path: "/goproxy/sumdb/sum.example/supported", Answer: &ecosystem.Answer{Status: 200, ContentType: typeText}}},
		{"/goproxy/sumdb/sum.example/latest", ecosystem.Route{Kind: ecosystem.RoutePass, Log: "sum.example", File: "sum.example/latest", Path: "/goproxy/sumdb/sum.example/latest"}},
		{"/goproxy/sumdb/sum.example/db/lookup/example.com/!foo@v1.0.0", ecosystem.Route{Kind: ecosystem.RoutePass, Project: "example.com/Foo", Version: "v1.0.0", Log: "sum.example/db", File: "sum.example/db/lookup/example.com/!foo@v1.0.0", Path: "/goproxy/sumdb/sum.example/db/lookup/example.com/!foo@v1.0.0"}},
		{"/goproxy/sumdb/sum.example/tile/8/0/x001/234", ecosystem.Route{Kind: ecosystem.RoutePass, Log: "sum.example", Records: 1234<<8 + 256, File: "sum.example/tile/8/0/x001/234", Path: "/goproxy/sumdb/sum.example/tile/8/0/x001/234", Immutable: true, Part: 256 * 32, Whole: "sum.example/tile/8/0/x001/234"}},
		{"/goproxy/sumdb/sum.example/tile/8/1/003.p/17", ecosystem.Route{Kind: ecosystem.RoutePass, Log: "sum.example", Records: (3<<8 + 17) << 8, File: "sum.example/tile/8/1/003.p/17", Path: "/goproxy/sumdb/sum.example/tile/8/1/003.p/17", Immutable: true, Part: 17 * 32, Whole: "sum.example/tile/8/1/003"}},
		{"/goproxy/sumdb/sum.example/tile/8/7/000.p/1", ecosystem.Route{Kind: ecosystem.RoutePass, Log: "sum.example", Records: 1 << 56, File: "sum.example/tile/8/7/000.p/1", Path: "/goproxy/sumdb/sum.example/tile/8/7/000.p/1", Immutable: true, Part: 1 * 32, Whole: "sum.example/tile/8/7/000"}},
		{"/goproxy/sumdb/sum.example/tile/8/8/000.p/1", ecosystem.Route{Kind: ecosystem.RoutePass, Log: "sum.example", Records: math.MaxInt64, File: "sum.example/tile/8/8/000.p/1", Path: "/goproxy/sumdb/sum.example/tile/8/8/000.p/1", Immutable: true, Part: 1 * 32, Whole: "sum.example/tile/8/8/000"}},
	} {
		got, err := golang.New().Route(ecosystem.Place{Base: "/goproxy/", Files: true}, ecosystem.Request{Path: c.path})
		if (err == nil) != (c.want.Kind != "") {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.path, diff)
		}
	}
}

func TestRouteRefuses(t *testing.T) {
	list := "/example.com/foo/@v/list"
	for name, c := range map[string]struct {
		place ecosystem.Place
		r     ecosystem.Request
	}{
		"a query":                    {place(), ecosystem.Request{Path: list, Query: "go-get=1"}},
		"another method":             {place(), ecosystem.Request{Path: list, Method: "POST"}},
		"another base":               {ecosystem.Place{Base: "/go/"}, ecosystem.Request{Path: list}},
		"the base":                   {ecosystem.Place{Base: "/go/"}, ecosystem.Request{Path: "/go/"}},
		"a list of a host of files":  {ecosystem.Place{Files: true}, ecosystem.Request{Path: list}},
		"a database on such":         {ecosystem.Place{Files: true}, ecosystem.Request{Path: "/sumdb/sum.example/latest"}},
		"a zip where there are none": {ecosystem.Place{}, ecosystem.Request{Path: "/example.com/foo/@v/v1.0.0.zip"}},
	} {
		got, err := golang.New().Route(c.place, c.r)
		if !errors.Is(err, fault.ErrInvalid) && !errors.Is(err, fault.ErrNotFound) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := golang.New().Route(place(), ecosystem.Request{Path: list, Method: "HEAD"}); err != nil {
		t.Errorf("HEAD: %v", err)
	}
}

// TestAsks: what is asked of the upstream is spelled as proxies spell it.
func TestAsks(t *testing.T) {
	p, base := golang.New(), "https://index.example/goproxy/"
	if got := p.IndexAsk(base, "example.com/Foo").URL; got != base+"example.com/!foo/@v/list" {
		t.Errorf("the list is asked for at %s", got)
	}
	for _, path := range []string{
		"example.com/!foo/@latest", "example.com/!foo/@v/main.info", "example.com/!foo/@v/v1.0.0-!r!c1.mod", "example.com/!foo/@v/v2.0.0+incompatible.info",
	} {
		r, err := p.Route(ecosystem.Place{Base: "/goproxy/"}, ecosystem.Request{Path: "/goproxy/" + path})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.AttachmentAsk(base, r).URL; got != base+path {
			t.Errorf("%s is asked for at %s", path, got)
		}
	}
	for _, path := range []string{
		"sumdb/sum.example/latest", "sumdb/sum.example/lookup/example.com/!foo@v2.0.0+incompatible", "sumdb/sum.example/db/tile/8/0/x001/234.p/7",
	} {
		r, err := p.Route(ecosystem.Place{Base: "/goproxy/"}, ecosystem.Request{Path: "/goproxy/" + path})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.PassAsk(base, r).URL; got != base+path {
			t.Errorf("%s is asked for at %s", path, got)
		}
	}
	f, err := p.Addressed(base, ecosystem.Route{Project: "example.com/Foo", Version: "v0.0.0-20200101000000-0123456789ab"})
	want := ecosystem.File{
		Name: "v0.0.0-20200101000000-0123456789ab.zip", Version: "v0.0.0-20200101000000-0123456789ab", Kind: policy.KindPackage,
		URL:  base + "example.com/!foo/@v/v0.0.0-20200101000000-0123456789ab.zip",
		Path: "/goproxy/example.com/!foo/@v/v0.0.0-20200101000000-0123456789ab.zip",
	}
	if diff := cmp.Diff(want, f); diff != "" || err != nil {
		t.Errorf("addressed: %v (-want +got):\n%s", err, diff)
	}
	if _, err := p.Addressed(base, ecosystem.Route{Project: "example.com/Foo", Version: "main"}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a branch was addressed: %v", err)
	}
}

func TestParseIndex(t *testing.T) {
	ix, err := golang.New().ParseIndex("example.com/foo", listPage("example.com/foo",
		"v1.10.0\r\n\n  \nv1.9.0 2020-01-01T00:00:00Z\nv1.9.0\nv1.9.0-rc.1\nv2.0.0+incompatible\nv0.0.0-20200101000000-0123456789ab\nv2.0.0\nv1.2\n1.2.3\nlatest"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range ix.Files {
		got = append(got, f.Version)
		if f.Digest != "" || !f.Published.IsZero() || f.Kind != policy.KindPackage || f.URL != "https://index.example"+f.Path {
			t.Errorf("%+v", f)
		}
	}
	if diff := cmp.Diff([]string{"v0.0.0-20200101000000-0123456789ab", "v1.9.0-rc.1", "v1.9.0", "v1.10.0", "v2.0.0+incompatible"}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if len(ix.LeftOut) != 4 {
		t.Errorf("left out: %v", ix.LeftOut)
	}
	empty, err := golang.New().ParseIndex("example.com/foo", listPage("example.com/foo", ""), nil)
	if err != nil || len(empty.Files) != 0 {
		t.Errorf("an empty list: %+v, %v", empty, err)
	}
}

func TestParseIndexRefuses(t *testing.T) {
	good := "v1.0.0\n"
	for name, p := range map[string]ecosystem.Page{
		"another module":     listPage("example.com/foobar", good),
		"a part of a name":   listPage("other/example.com/foo-", good),
		"redirected":         ecosystem.PageOf("https://files.example/blobs/1", typeText, []byte(good)),
		"no url":             ecosystem.PageOf("", typeText, []byte(good)),
		"json":               ecosystem.PageOf("https://index.example/example.com/foo/@v/list", "application/json", []byte(`["v1.0.0"]`)),
		"a sentence":         listPage("example.com/foo", "not found: module example.com/foo\n"),
		"control characters": listPage("example.com/foo", "v1.0.0\x1b[31m\n"),
		"not ASCII":          listPage("example.com/foo", "v1.0.0-é\n"),
		"invalid utf-8":      listPage("example.com/foo", "v1.0.0-\xff\n"),
		"a NUL":              listPage("example.com/foo", "v1.0.0\x00\n"),
		"a long line":        listPage("example.com/foo", "v1.0.0-"+strings.Repeat("a", 5000)),
		"more than a time":   listPage("example.com/foo", "v1.0.0 2020-01-01T00:00:00Z h1:x\n"),
		"a path":             listPage("example.com/foo", "../v1.0.0\n"),
	} {
		ix, err := golang.New().ParseIndex("example.com/foo", p, nil)
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %+v, %v; want fault.ErrInvalid", name, ix, err)
		}
	}
}

// TestRender: allowed versions only, but all where none is, so that the go
// command comes to the one whose refusal it prints.
func TestRender(t *testing.T) {
	ix, err := golang.New().ParseIndex("example.com/foo", listPage("example.com/foo", "v1.0.0\nv1.1.0\nv1.2.0\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	allow, deny := ecosystem.Verdict{Allowed: true}, ecosystem.Verdict{Reason: "x"}
	for _, c := range []struct {
		verdicts []ecosystem.Verdict
		want     string
	}{
		{[]ecosystem.Verdict{allow, allow, allow}, "v1.0.0\nv1.1.0\nv1.2.0\n"},
		{[]ecosystem.Verdict{allow, deny, deny}, "v1.0.0\n"},
		{[]ecosystem.Verdict{deny, deny, deny}, "v1.0.0\nv1.1.0\nv1.2.0\n"},
	} {
		var b bytes.Buffer
		if err := golang.New().Render(&b, ix, nil, ecosystem.View{Form: "list", Verdicts: c.verdicts}); err != nil || b.String() != c.want {
			t.Errorf("%v: %q, %v", c.verdicts, b.String(), err)
		}
	}
	for _, v := range []ecosystem.View{{Form: "list"}, {Form: "html", Verdicts: make([]ecosystem.Verdict, 3)}, {Form: "list", Release: "latest", Verdicts: make([]ecosystem.Verdict, 3)}} {
		if err := golang.New().Render(&bytes.Buffer{}, ix, nil, v); err == nil {
			t.Errorf("%+v was rendered", v)
		}
	}
}

// TestRefusalIsPrinted: what the go command prints of a body and what it drops.
func TestRefusalIsPrinted(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for name, r := range map[string]ecosystem.Refusal{
		"usual":          {Cause: ecosystem.ByPolicy, What: "go example.com/a v1.0.0", Reason: "it is not on the list", Rule: "packages.default", RequestID: "r-1", Suggest: "allowed_packages:\n  go:\n    - name: example.com/a\n"},
		"long":           {Cause: ecosystem.ByPolicy, What: long, Reason: long, Rule: long, RequestID: long, Suggest: long},
		"many lines":     {Cause: ecosystem.ByPolicy, Reason: "it is not on the list", Suggest: strings.Repeat("a:\n", 20)},
		"empty lines":    {Cause: ecosystem.ByPolicy, Reason: "\n \n", Suggest: "\n\n \na: 1\n\n"},
		"hostile":        {Cause: ecosystem.Unverified, Reason: "a\x1b[31m\u202eb\n\nc\x00", Rule: "\n", RequestID: "\n\n"},
		"waiting":        {Cause: ecosystem.ByPolicy, Reason: "it waits", Rule: "packages.default", RequestID: "r-1", Suggest: "a: 1\n", Approval: "ap-7k2m4q", Approve: "cofferdam approvals approve ap-7k2m4q"},
		"long, waiting":  {Cause: ecosystem.ByPolicy, What: long, Reason: long, Rule: long, RequestID: long, Suggest: long, Approval: long, Approve: long},
		"nothing at all": {},
	} {
		a := golang.New().Refuse(r)
		lines := strings.Split(strings.TrimSuffix(string(a.Body), "\n"), "\n")
		if len(lines) > 8 || len(a.Body) > 640 || a.ContentType != typeText {
			t.Errorf("%s: %d lines, %d bytes, %s", name, len(lines), len(a.Body), a.ContentType)
		}
		for _, line := range lines {
			if strings.TrimSpace(line) == "" || ecosystem.Line(line) != line {
				t.Errorf("%s: the line %q ends what is printed", name, line)
			}
		}
	}
	body := string(golang.New().Refuse(ecosystem.Refusal{Cause: ecosystem.ByPolicy, Reason: "no", Suggest: "allowed_packages:\n  go: []\n"}).Body)
	if !strings.Contains(body, "to allow it:\nallowed_packages:\n  go: []\n") {
		t.Errorf("the suggestion is not in\n%s", body)
	}
	body = string(golang.New().Refuse(ecosystem.Refusal{
		Cause: ecosystem.ByPolicy, Reason: "it waits", RequestID: "r-1", Approval: "ap-7k2m4q", Approve: "cofferdam approvals approve ap-7k2m4q",
	}).Body)
	if body != "it waits\nit waits for a person as ap-7k2m4q\non the host: cofferdam approvals approve ap-7k2m4q\nthen run the same command again\n" {
		t.Errorf("what waits is told as\n%s", body)
	}
}

func TestToolchain(t *testing.T) {
	if p := golang.New(); !p.Toolchain("golang.org/toolchain") || p.Toolchain("golang.org/toolchain/v2") || p.Toolchain("example.com/toolchain") {
		t.Error("the toolchain's module is not told from others")
	}
}
