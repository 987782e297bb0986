package gateway_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

const corgi = "application/vnd.npm.install-v1+json"

// newNodeBench has one registry of npm's protocol at the root of the index's
// host. It asks again each time for what it is asked for.
func newNodeBench(t *testing.T, change func(*bench, *upstream.Config)) *bench {
	t.Helper()
	b := &bench{t: t, registry: liar.New(t, indexHost, filesHost, "evil.example"), door: newDoor(t)}
	u := upstream.Config{Ecosystem: pkgref.Node, Index: b.registry.URL(indexHost, "/"), CAPEM: b.registry.CAPEM}
	b.cfg = gateway.Config{CacheDir: t.TempDir(), Protocols: []ecosystem.Protocol{npm.New()}, Resolver: b.registry, Version: "test", Limits: testLimits()}
	b.cfg.Limits.Fresh, b.cfg.Limits.Stale = 1, 1
	if change != nil {
		change(b, &u)
	}
	b.cfg.Upstreams = append(b.cfg.Upstreams, u)
	b.start()
	return b
}

// nodePublish puts releases of one package on a host; edit changes the page.
func (b *bench) nodePublish(host string, edit func(string) string, releases ...npmtest.Release) {
	b.t.Helper()
	for i := range releases {
		r := &releases[i]
		r.URL = b.registry.URL(host, r.Path())
		b.registry.Script(host+r.Path(), liar.Body("application/octet-stream", r.Bytes))
	}
	page := string(npmtest.Packument(b.t, releases[0].Name, nil, releases...))
	if edit != nil {
		page = edit(page)
	}
	b.registry.Script(nodePage(host, releases[0].Name), liar.Body(npmtest.Type, []byte(page)))
}

func nodePage(host, name string) string { return host + "/" + strings.Replace(name, "/", "%2f", 1) }

// deny refuses one name, and notes what the door was asked.
func deny(name string) func(pkgref.Ref, door.File) policy.Decision {
	return func(ref pkgref.Ref, _ door.File) policy.Decision {
		if ref.Name == name {
			return policy.Decision{Effect: policy.Deny, Reason: name + " is refused"}
		}
		return policy.Decision{Effect: policy.Allow}
	}
}

// TestNodeSpellings is G-NM-02 and ways 15 and 20 for npm: all spellings of a
// name are one package with one verdict and one cached page; what is no spelling
// is refused before anybody is asked, and another case is another package.
func TestNodeSpellings(t *testing.T) {
	pages := []string{"/@s/foo", "/@s%2ffoo", "/@s%2Ffoo", "/%40s%2ffoo", "/%40s/foo"}
	tarballs := []string{
		"/@s/foo/-/foo-1.0.0.tgz", "/@s%2ffoo/-/foo-1.0.0.tgz", "/@s%2Ffoo/-/foo-1.0.0.tgz", "/%40s/foo/-/foo-1.0.0.tgz",
	}
	b := newNodeBench(t, func(b *bench, _ *upstream.Config) { b.cfg.Limits.Fresh = 0 })
	foo, other := npmtest.Pack(t, "@s/foo", "1.0.0", nil), npmtest.Pack(t, "@s/Foo", "1.0.0", nil)
	b.nodePublish(indexHost, nil, foo)
	b.nodePublish(indexHost, nil, other)
	for _, path := range pages {
		if a := b.get(path); a.StatusCode != 200 || a.body != b.get(pages[0]).body {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	for _, path := range tarballs {
		if a := b.get(path); a.StatusCode != 200 || a.body != string(foo.Bytes) {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	if p, f := b.registry.Count(nodePage(indexHost, "@s/foo")), b.registry.Count(indexHost+foo.Path()); p != 1 || f != 1 || b.blobs() != 1 {
		t.Errorf("the page was asked for %d times, the file %d times; %d blobs", p, f, b.blobs())
	}
	b.door.rule(deny("@s/foo"))
	for _, path := range append(pages, tarballs...) {
		if a := b.get(path); a.StatusCode != http.StatusForbidden || !strings.Contains(a.Status, "@s/foo is refused") {
			t.Errorf("refused, %s: %s", path, status(a))
		}
	}
	if a := b.get(other.Path()); a.StatusCode != 200 || a.body != string(other.Bytes) {
		t.Errorf("another package, by its case: %s", status(a))
	}
	asked := len(b.registry.Requests())
	for _, path := range []string{
		"/@s%252ffoo", "/@s%25%32%66foo", "/%2540s/foo", "/@s%2f%2ffoo", "/@s//foo", "/@s/./foo", "/@s/x/../foo", "/@s/x%2f..%2ffoo", "/@s/foo%00", "/@s/foo;a",
		"/@s/foo%0d%0aX:y", "/@s\\foo", "/@s%5cfoo", "/@ѕ/foo", "/@s/fo%c2%ad", "/@s/foo%ff", "/@s/foo/", "/@s/foo?x=y", "/@s", "/@s/", "/@s/.foo", "/@s/foo.", "/@s/f%6fo", "/@s/foo/-/foo-1.0%2e0.tgz",
		"/@s/foo/-/foo-1.0.0.tgz?x", "/@s/foo/-/foo-1.0.0.tgz%00", "/@s/foo/-/bar-1.0.0.tgz", "/@t/foo/-/@s/foo-1.0.0.tgz", "/@s/foo/-/..%2ffoo-1.0.0.tgz", "/@s/foo/-/foo-01.0.0.tgz",
	} {
		a := b.raw(indexHost, "GET "+path+" HTTP/1.1\r\nHost: "+indexHost+"\r\n\r\n")
		if path == "/@s/foo." && a.StatusCode == 404 {
			continue // a name of its own, that nobody has
		}
		if a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	for _, r := range b.registry.Requests()[asked:] {
		if r.Path != "/@s%2ffoo." {
			t.Errorf("%s was asked for", r.Path)
		}
	}
}

// TestNodePagesOfOtherCase: a mirror that folds cases can't lend a package's
// page or file to a name that the policy knows nothing of.
func TestNodePagesOfOtherCase(t *testing.T) {
	b := newNodeBench(t, nil)
	foo := npmtest.Pack(t, "foo", "1.0.0", nil)
	b.nodePublish(indexHost, nil, foo)
	b.registry.Script(indexHost+"/Foo", liar.Body(npmtest.Type, npmtest.Packument(t, "foo", nil, foo)))
	for i, path := range []string{"/Foo", "/Foo/-/Foo-1.0.0.tgz", "/Foo/1.0.0"} {
		refusedWithRecord(t, b, b.get(path), i)
	}
}

// TestNodeFilesDecideAlone is way 8: a tarball that nobody asked a page for is
// found in the index by the gateway itself, and judged like any other; a
// refused one is never fetched.
func TestNodeFilesDecideAlone(t *testing.T) {
	b := newNodeBench(t, nil)
	foo, bar := npmtest.Pack(t, "foo", "1.0.0", nil), npmtest.Pack(t, "bar", "1.0.0", nil)
	b.nodePublish(indexHost, nil, foo)
	b.nodePublish(indexHost, nil, bar)
	unlisted := npmtest.Pack(t, "foo", "1.0.1", nil)
	b.registry.Script(indexHost+unlisted.Path(), liar.Body("application/octet-stream", unlisted.Bytes))
	b.door.rule(deny("bar"))
	if a := b.get(foo.Path()); a.StatusCode != 200 || a.body != string(foo.Bytes) {
		t.Errorf("the allowed one: %s", status(a))
	}
	for range 2 {
		for _, header := range [][]string{nil, {"Range", "bytes=0-"}, {"If-None-Match", "*"}, {"Accept", "*/*"}, {"If-Range", "x", "Range", "bytes=1-2"}} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				a := b.do(sandboxA, method, "https://"+indexHost+bar.Path(), header...)
				if a.StatusCode != http.StatusForbidden || !strings.Contains(a.Status, "bar is refused") || strings.Contains(a.body, string(bar.Bytes[:8])) {
					t.Errorf("the refused one, %s %v: %s", method, header, status(a))
				}
			}
		}
	}
	if a := b.get(unlisted.Path()); a.StatusCode != http.StatusFailedDependency || !strings.Contains(a.Status, "does not list") {
		t.Errorf("one that the index does not list: %s", status(a))
	}
	for _, path := range []string{bar.Path(), unlisted.Path()} {
		if n := b.registry.Count(indexHost + path); n != 0 {
			t.Errorf("%s was fetched", path)
		}
	}
	if n := len(b.door.Served()); n != 1 {
		t.Errorf("%d served", n)
	}
	// It is in the cache by now for whoever may have it, and for nobody else.
	b.door.rule(allowAll)
	if a := b.get(bar.Path()); a.StatusCode != 200 {
		t.Error(status(a))
	}
	b.door.rule(deny("bar"))
	if a := b.do("sb-b", http.MethodGet, "https://"+indexHost+bar.Path()); a.StatusCode != http.StatusForbidden {
		t.Errorf("from a warm cache: %s", status(a))
	}
}

// TestNodeTagsMove is G-NM-06: a tag that has moved is judged as the release
// that it stands for now, and a page never points to what it withholds.
func TestNodeTagsMove(t *testing.T) {
	b := newNodeBench(t, nil)
	one, two := npmtest.Pack(t, "foo", "1.0.0", nil), npmtest.Pack(t, "foo", "2.0.0", nil)
	b.door.rule(func(ref pkgref.Ref, _ door.File) policy.Decision {
		if ref.Version == "2.0.0" {
			return policy.Decision{Effect: policy.Deny, Reason: "2.0.0 is too new"}
		}
		return policy.Decision{Effect: policy.Allow}
	})
	tag := func(version string) func(string) string {
		return func(page string) string {
			return strings.Replace(page, `"latest":"2.0.0"`, `"latest":"`+version+`"`, 1)
		}
	}
	for _, version := range []string{"1.0.0", "2.0.0", "1.0.0"} {
		b.nodePublish(indexHost, tag(version), one, two)
		for _, accept := range []string{corgi, npmtest.Type, ""} {
			for _, path := range []string{"/foo", "/foo/latest", "/-/package/foo/dist-tags"} {
				if a := b.get(path, "Accept", accept); a.StatusCode != 200 || strings.Contains(a.body, "2.0.0") || !strings.Contains(a.body, "1.0.0") {
					t.Errorf("latest is %s, %s as %s: %s", version, path, accept, status(a))
				}
			}
		}
		for _, path := range []string{"/foo/2.0.0", two.Path()} {
			if a := b.get(path); a.StatusCode != http.StatusForbidden || !strings.Contains(a.Status, "2.0.0 is too new") {
				t.Errorf("%s: %s", path, status(a))
			}
		}
	}
}

// TestNodeOnlyReads is way 34: nothing that a client would write or search for
// is sent anywhere, whatever it sends, and nothing of its body is looked at.
func TestNodeOnlyReads(t *testing.T) {
	b := newNodeBench(t, nil)
	const secret = "c2VjcmV0" // in names, queries and bodies
	requests := []string{
		"PUT /foo", "PUT /@s%2f" + secret, "POST /foo", "DELETE /foo/-rev/1-0", "PUT /foo/-rev/1", "PUT /-/user/org.couchdb.user:" + secret, "POST /-/v1/login",
		"PUT /-/package/foo/dist-tags/" + secret, "DELETE /-/package/foo/dist-tags/x", "POST /-/npm/v1/security/advisories/bulk", "POST /-/npm/v1/security/audits",
		"POST /-/npm/v1/security/audits/quick", "PUT /-/npm/v1/user", "POST /-/npm/v1/tokens", "PUT /-/org/" + secret + "/package", "POST /-/package/foo/access",
		"GET /-/v1/search?text=" + secret, "GET /-/all?x=" + secret, "GET /-/whoami", "GET /-/npm/v1/user", "GET /-/user/" + secret + "/package", "GET /-/_view/starredByUser?key=" + secret,
		"GET /foo?write=true", "GET /-/org/" + secret + "/user", "GET /-/ping", "GET /-/" + secret, "GET /-/npm/v1/attestations/" + secret,
	}
	for _, request := range requests {
		body := ""
		if !strings.HasPrefix(request, "GET") {
			body = `{"name":"` + secret + `","` + secret + `":["1.0.0"]}`
		}
		a := b.raw(indexHost, request+" HTTP/1.1\r\nHost: "+indexHost+"\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
		if a.StatusCode >= 500 || strings.Contains(a.body, secret) {
			t.Errorf("%s: %s", request, status(a))
		}
		if answers := strings.Contains(request, "security") || strings.Contains(request, "ping"); (a.StatusCode == 200) != answers {
			t.Errorf("%s: %s", request, status(a))
		}
	}
	if r := b.registry.Requests(); len(r) != 0 {
		t.Errorf("%d requests went out: %v", len(r), r)
	}
	b.nodePublish(indexHost, nil, npmtest.Pack(t, "foo", "1.0.0", nil)) // positive control
	if a := b.get("/foo"); a.StatusCode != 200 || len(b.registry.Requests()) != 1 {
		t.Error(status(a))
	}
}
