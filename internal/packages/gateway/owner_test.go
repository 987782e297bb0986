package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// newOwnedBench has a public upstream on one host and a private one on another,
// and the public one has better versions of everything.
func newOwnedBench(t *testing.T) *bench {
	t.Helper()
	b := newToyBench(t, addressed{newToy(pkgref.Go)}, func(b *bench, _ *upstream.Config) {
		b.cfg.Upstreams = []upstream.Config{{Ecosystem: pkgref.Go, Index: b.registry.URL(filesHost, "/"), CAPEM: b.registry.CAPEM}}
	})
	for host, version := range map[string]string{filesHost: "1.0.0", indexHost: "9.0.0"} {
		b.list(host, "acme", toyFile{Version: version})
		b.file(host, toyPackage{Name: "acme", Version: version})
		b.registry.Script(host+"/acme/1.0.0.mod", text("1.0.0 "+strings.ReplaceAll(host, ".", "-")))
		b.file(host, toyPackage{Name: "acme", Version: "1.0.0", Findings: []string{host}})
	}
	return b
}

// requestsTo counts what a host heard.
func (b *bench) requestsTo(host string) (n int) {
	for _, r := range b.registry.Requests() {
		if r.Host == host {
			n++
		}
	}
	return n
}

var ownedPaths = []string{"/acme", "/acme/1.0.0.pkg", "/acme/1.0.0.mod"}

// TestOwnedNames is G-NM-04 and way 35: a private name is asked of its own
// upstream, whatever host the client asks on, and the public one never hears it.
func TestOwnedNames(t *testing.T) {
	b := newOwnedBench(t)
	b.door.owner = strings.TrimSuffix(b.registry.URL(filesHost, "/"), "/") // as a person may write it
	for _, host := range []string{indexHost, filesHost} {
		for _, path := range ownedPaths {
			if a := b.do(sandboxA, http.MethodGet, "https://"+host+path); a.StatusCode != 200 || strings.Contains(a.body, "9.0.0") || strings.Contains(a.body, "index") {
				t.Errorf("%s%s: %s", host, path, status(a))
			}
		}
	}
	if n := b.requestsTo(indexHost); n != 0 {
		t.Errorf("the public upstream heard %d requests", n)
	}
	b.door.owner = "" // positive control
	if a := b.do(sandboxA, http.MethodGet, "https://"+indexHost+"/acme"); a.StatusCode != 200 || !strings.Contains(a.body, "9.0.0") {
		t.Errorf("a name that nobody owns: %s", status(a))
	}
}

// TestOwnedNamesFallNowhere: with the private upstream down, lying or not
// configured, nobody else is asked.
func TestOwnedNamesFallNowhere(t *testing.T) {
	for name, reply := range map[string]liar.Reply{"down": liar.Status(503), "without it": liar.Status(404), "lying": liar.Redirect("https://index.example/acme")} {
		t.Run(name, func(t *testing.T) {
			b := newOwnedBench(t)
			b.door.owner = b.registry.URL(filesHost, "/")
			for _, path := range append(ownedPaths, "/acme/9.0.0.pkg") {
				b.registry.Script(filesHost+path, reply)
			}
			for _, path := range append(ownedPaths, "/acme/9.0.0.pkg") {
				if a := b.do(sandboxA, http.MethodGet, "https://"+indexHost+path); a.StatusCode != 424 && (a.StatusCode != 404 || name != "without it") {
					t.Errorf("%s: %s", path, status(a))
				}
			}
			if n := b.requestsTo(indexHost); n != 0 || len(b.door.Served()) != 0 {
				t.Errorf("the public upstream heard %d requests; served %v", n, b.door.Served())
			}
		})
	}
	b := newOwnedBench(t)
	b.door.owner = "https://nobody.example/"
	for _, path := range ownedPaths {
		if a := b.do(sandboxA, http.MethodGet, "https://"+indexHost+path); a.StatusCode != 403 || !strings.Contains(a.Status, "belongs to another upstream") || a.Header.Get("X-Cofferdam-Request") == "" {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	if n := len(b.registry.Requests()); n != 0 {
		t.Errorf("%d requests went out", n)
	}
	for _, f := range b.door.Failures() {
		if f.ResolvedBy != policy.ByNamespace || f.Package.Name != "acme" {
			t.Errorf("recorded %+v", f)
		}
	}
	b.door.broken = true
	if a := b.do(sandboxA, http.MethodGet, "https://"+indexHost+"/acme"); a.StatusCode == 200 {
		t.Errorf("nobody could say whose the name is: %s", status(a))
	}
}

// TestSharedHosts: two ecosystems on one host are told apart by the longest
// path that fits.
func TestSharedHosts(t *testing.T) {
	node, crates := newToy(pkgref.Node), newToy(pkgref.Rust)
	b := newToyBench(t, node, func(b *bench, u *upstream.Config) {
		b.cfg.Protocols = append(b.cfg.Protocols, crates, node)
		u.Index = b.registry.URL(indexHost, "/npm/")
		b.cfg.Upstreams = []upstream.Config{
			{Ecosystem: pkgref.Rust, Index: b.registry.URL(indexHost, "/"), CAPEM: b.registry.CAPEM},
			{Ecosystem: pkgref.Rust, Index: b.registry.URL(indexHost, "/npm/crates/"), CAPEM: b.registry.CAPEM},
		}
	})
	for path, body := range map[string]string{"/foo": `[{"Version":"1.0.0"}]`, "/npm/foo": `[{"Version":"2.0.0"}]`, "/npm/crates/foo": `[{"Version":"3.0.0"}]`} {
		b.registry.Script(indexHost+path, liar.Body("application/json", []byte(body)))
	}
	for path, version := range map[string]string{"/foo": "1.0.0", "/npm/foo": "2.0.0", "/npm/crates/foo": "3.0.0"} {
		b.registry.Script(indexHost+path+"/"+version+".pkg", bodyOf(toyPackage{Name: "foo", Version: version}.bytes()))
		if a := b.get(path + "/" + version + ".pkg"); a.StatusCode != 200 || !strings.Contains(a.body, version) {
			t.Errorf("a file below %s: %s", path, status(a))
		}
		if a := b.get(path); a.StatusCode != 200 || !strings.Contains(a.body, version) {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	if n := b.registry.Count(indexHost + "/npm"); n != 0 {
		t.Error("one ecosystem's file was looked for in another's index")
	}
}

// TestSideDownloads: what tools fetch from outside the registries is refused
// with words for a person that name no key of a policy, since none is asked, and recorded as a toolchain's.
func TestSideDownloads(t *testing.T) {
	b := newToyBench(t, newToy(pkgref.Node), nil)
	const url = "https://" + gateway.DownloadsName
	for path, says := range map[string]string{
		"/node-headers/v22.0.0/node-v22.0.0-headers.tar.gz": "node headers come from outside the registries, and no policy lets that in; docs/templates.md#downloads says how to have them",
		"/playwright/builds/x.zip":                          "the browser builds of Playwright come from outside the registries",
		"/python/x":                                         "Python builds come from outside the registries",
		"/%3Cscript%3E/x?a=b":                               "this comes from outside the registries, and no policy lets that in",
		"/":                                                 "this comes from outside the registries",
	} {
		a := b.do(sandboxA, http.MethodGet, url+path)
		if a.StatusCode != 403 || !strings.HasPrefix(a.Status, "403 Blocked by cofferdam: "+says) || !strings.Contains(a.Status, "request f-") ||
			a.Header.Get("Content-Type") != "text/plain; charset=utf-8" || !strings.Contains(a.body, says) || strings.Contains(a.body, "script") {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	for _, f := range b.door.Failures() {
		if f.ResolvedBy != policy.ByToolchain || f.Rule != "downloads" || strings.Contains(f.Reason, "packages.") || f.Package != (pkgref.Ref{}) || !strings.HasPrefix(f.SourceURL, url+"/") {
			t.Errorf("recorded %+v", f)
		}
	}
	if a := b.do(sandboxA, http.MethodPost, url+"/python/"); a.StatusCode != 405 {
		t.Error(status(a))
	}
	if n := len(b.registry.Requests()); n != 0 || len(b.door.Failures()) != 6 { // the last is of its method
		t.Errorf("%d requests, %d records", n, len(b.door.Failures()))
	}
}
