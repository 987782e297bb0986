package golang_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang"
)

func modRoute(version string) ecosystem.Route {
	return ecosystem.Route{Kind: ecosystem.RouteAttachment, Project: "example.com/foo", File: version + ".mod", Version: version}
}

func infoRoute(version string, query bool) ecosystem.Route {
	return ecosystem.Route{Kind: ecosystem.RouteAttachment, Project: "example.com/foo", File: version + ".info", Version: version, Query: query}
}

func TestMod(t *testing.T) {
	body := `module example.com/fork // a comment

go 1.21
toolchain go1.99.0
godebug x=y
unknown line

require example.com/a v1.2.3
require (
	example.com/b/v2 v2.0.0-20200101000000-0123456789ab // indirect
	example.com/c v2.0.0+incompatible
)
replace example.com/a => ../evil
replace example.com/d => example.com/evil v1.0.0
exclude example.com/e v1.0.0
retract v1.0.0
`
	a, err := golang.New().Attachment(modRoute("v1.0.0"), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	want := ecosystem.Attachment{
		Version: "v1.0.0", ContentType: typeText, Body: []byte(body), Witnessed: true,
		Requirements: []ecosystem.Requirement{
			{Name: "example.com/a", Specifier: ">=v1.2.3"},
			{Name: "example.com/b/v2", Specifier: ">=v2.0.0-20200101000000-0123456789ab"},
			{Name: "example.com/c", Specifier: ">=v2.0.0+incompatible"},
		},
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("attachment (-want +got):\n%s", diff)
	}
	for name, body := range map[string]string{
		"html":         "<html><body>Please log in.</body></html>\n",
		"nothing":      "",
		"not utf-8":    "module example.com/\xff\n",
		"a NUL":        "module example.com/foo\x00\n",
		"two modules":  "module example.com/foo\nmodule example.com/bar\n",
		"half a block": "module example.com/foo\nrequire (\n",
		"no version":   "module example.com/foo\nrequire example.com/a\n",
		"too much":     "module example.com/foo\n" + strings.Repeat("// x\n", 1<<20),
		"a huge list":  "module example.com/foo\nrequire (\n" + strings.Repeat("example.com/a v1.0.0\n", 30_000) + ")\n",
	} {
		if a, err := golang.New().Attachment(modRoute("v1.0.0"), []byte(body)); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %+v, %v; want fault.ErrInvalid", name, a.Requirements, err)
		}
	}
}

func TestInfo(t *testing.T) {
	for name, c := range map[string]struct {
		route          ecosystem.Route
		body, want     string
		wantVersion    string
		wantNoFurthers bool
	}{
		"usual": {
			route: infoRoute("v1.0.0", false), body: `{"Version":"v1.0.0","Time":"2026-01-02T03:04:05+01:00","Origin":{"URL":"https://evil.example","Ref":"x"},"X":[1]}`,
			want: `{"Version":"v1.0.0","Time":"2026-01-02T02:04:05Z"}` + "\n", wantVersion: "v1.0.0",
		},
		"no time":  {route: infoRoute("v1.0.0", false), body: `{"Version":"v1.0.0"}`, want: `{"Version":"v1.0.0"}` + "\n", wantVersion: "v1.0.0"},
		"a branch": {route: infoRoute("main", true), body: `{"Version":"v0.0.0-20200101000000-0123456789ab"}`, want: `{"Version":"v0.0.0-20200101000000-0123456789ab"}` + "\n", wantVersion: "v0.0.0-20200101000000-0123456789ab"},
		"latest": {
			route: ecosystem.Route{Project: "example.com/foo", File: "@latest", Version: "latest", Query: true},
			body:  `{"Version":"v2.0.0+incompatible"}`, want: `{"Version":"v2.0.0+incompatible"}` + "\n", wantVersion: "v2.0.0+incompatible",
		},
	} {
		a, err := golang.New().Attachment(c.route, []byte(c.body))
		if err != nil || string(a.Body) != c.want || a.Version != c.wantVersion || a.Witnessed || a.ContentType != "application/json" || a.Requirements != nil {
			t.Errorf("%s: %+v (%s), %v", name, a, a.Body, err)
		}
	}
}

func TestInfoRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		route ecosystem.Route
		body  string
	}{
		"another version":       {infoRoute("v1.0.0", false), `{"Version":"v1.0.1"}`},
		"no version":            {infoRoute("v1.0.0", false), `{}`},
		"another case":          {infoRoute("v1.0.0", false), `{"version":"v1.0.0"}`},
		"two versions":          {infoRoute("v1.0.0", false), `{"Version":"v1.0.0","Version":"v1.0.0"}`},
		"a duplicate key below": {infoRoute("v1.0.0", false), `{"Version":"v1.0.0","Origin":{"a":1,"a":2}}`},
		"not canonical":         {infoRoute("main", true), `{"Version":"v1.0"}`},
		"a branch":              {infoRoute("main", true), `{"Version":"main"}`},
		"another major":         {infoRoute("main", true), `{"Version":"v2.0.0"}`},
		"a path":                {infoRoute("main", true), `{"Version":"../v1.0.0"}`},
		"a bad time":            {infoRoute("v1.0.0", false), `{"Version":"v1.0.0","Time":"yesterday"}`},
		"a time no JSON has":    {infoRoute("v1.0.0", false), `{"Version":"v1.0.0","Time":"0000-01-01T00:00:00+23:00"}`},
		"a number for a time":   {infoRoute("v1.0.0", false), `{"Version":"v1.0.0","Time":1}`},
		"text after it":         {infoRoute("v1.0.0", false), `{"Version":"v1.0.0"}{}`},
		"html":                  {infoRoute("v1.0.0", false), `<html>`},
		"nothing":               {infoRoute("v1.0.0", false), ``},
		"null":                  {infoRoute("v1.0.0", false), `null`},
		"not utf-8":             {infoRoute("v1.0.0", false), "{\"Version\":\"v1.0.0\",\"X\":\"\xff\"}"},
		"too much":              {infoRoute("v1.0.0", false), `{"Version":"v1.0.0","X":"` + strings.Repeat("x", 1<<17) + `"}`},
	} {
		if a, err := golang.New().Attachment(c.route, []byte(c.body)); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %+v, %v; want fault.ErrInvalid", name, a, err)
		}
	}
}
