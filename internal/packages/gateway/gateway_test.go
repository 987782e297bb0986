package gateway_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

func TestNamesAreLearnt(t *testing.T) {
	b := newBench(t, nil)
	if diff := cmp.Diff([]string{gateway.DownloadsName, filesHost, indexHost}, b.gateway.Names()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := b.gateway.Upstreams()[0].FileHosts; !slices.Equal(got, []string{b.registry.Host(filesHost)}) {
		t.Errorf("learnt %v", got)
	}
}

func TestLearningIsTriedAgain(t *testing.T) {
	b := newBench(t, nil)
	page := liar.Body(pypitest.TypeJSON, pypitest.Page(t, "late", pypitest.Dist{Name: "late", File: "late-1.0.tar.gz", URL: b.registry.URL(filesHost, "/p/late-1.0.tar.gz")}))
	b.page("late", liar.Status(404), liar.Status(404), page)
	b.cfg.ProbeProjects = map[pkgref.Ecosystem][]string{pkgref.Python: {"late"}}
	b.restart()
	b.eventually("the file host is learnt", func() bool { return b.gateway.IsRegistry(filesHost) })
}

func TestIndexAndArtifact(t *testing.T) {
	b := newBench(t, nil)
	foo := pypitest.Wheel(t, "foo", "1.0", "bar>=2; python_version > '3'")
	b.publish(foo)
	page := b.get("/simple/foo/", "Accept", pypitest.TypeJSON)
	if page.StatusCode != 200 || !strings.Contains(page.body, `"url":"https://files.example/p/foo-1.0-py3-none-any.whl"`) {
		t.Fatal(status(page))
	}
	if h := page.Header; h.Get("Content-Type") != pypitest.TypeJSON || h.Get("Vary") != "Accept, Accept-Encoding" || h.Get("Cache-Control") != "no-cache" || h.Get("ETag") == "" || h.Get("X-Cache") != "" {
		t.Errorf("headers %v", h)
	}
	if again := b.get("/simple/foo/", "Accept", pypitest.TypeJSON, "If-None-Match", page.Header.Get("ETag")); again.StatusCode != 304 || again.body != "" {
		t.Errorf("with its own ETag: %s", status(again))
	}
	html := b.get("/simple/foo/")
	if html.Header.Get("Content-Type") != "text/html; charset=utf-8" || html.Header.Get("ETag") == page.Header.Get("ETag") {
		t.Errorf("HTML: %v", html.Header)
	}
	meta := b.get("/p/" + foo.File + ".metadata")
	if meta.StatusCode != 200 || meta.body != string(foo.Metadata) {
		t.Errorf("metadata: %s", status(meta))
	}
	wheel := b.get("/p/" + foo.File)
	if wheel.StatusCode != 200 || wheel.body != string(foo.Bytes) {
		t.Errorf("wheel: %s", wheel.Status)
	}
	want := door.ServeAsk{FileAsk: door.FileAsk{
		Sandbox: sandboxA, Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "foo", Version: "1.0"}, SourceURL: b.registry.URL(filesHost, "/p/"+foo.File),
		File:     door.File{Name: foo.File, Version: "1.0", Kind: policy.KindWheel, Digest: "sha256:" + foo.Digest(), Size: int64(len(foo.Bytes)), Published: foo.Uploaded},
		Upstream: b.registry.URL(indexHost, "/simple/"), Digests: []string{"sha256:" + foo.Digest(), sha512Of(foo.Bytes)},
	}, Bytes: door.Bytes{
		SHA256: foo.Digest(), Size: int64(len(foo.Bytes)), Paths: []string{"foo-1.0.dist-info/METADATA", "foo-1.0.dist-info/RECORD", "foo-1.0.dist-info/WHEEL", "foo.py"},
	}}
	served := b.door.Served()
	if len(served) == 1 && time.Since(served[0].File.FirstSeen) < time.Hour {
		want.File.FirstSeen = served[0].File.FirstSeen
		want.Kept = served[0].Kept // it may have been fetched ahead, or not yet
	}
	if diff := cmp.Diff([]door.ServeAsk{want}, served); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]door.Requirement{{Name: "bar", Specifier: ">=2"}}, b.door.edges["python foo 1.0"]); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
	for _, r := range b.registry.Requests() { // C-NE-12, G-PR-04: nothing of the client's goes upstream
		if r.Header.Get("User-Agent") != "cofferdam/test" {
			t.Errorf("upstream saw the client: %v", r.Header)
		}
	}
}

func sha512Of(b []byte) string {
	sum := sha512.Sum512(b)
	return "sha512:" + hex.EncodeToString(sum[:])
}

// TestEdgesComeBeforeBytes: the next request must meet the edges.
func TestEdgesComeBeforeBytes(t *testing.T) {
	b := newBench(t, nil)
	foo := pypitest.Wheel(t, "foo", "1.0", "bar")
	b.publish(foo)
	b.get("/p/" + foo.File)
	b.door.mu.Lock()
	defer b.door.mu.Unlock()
	if want := []string{"edges foo", "served " + foo.File}; len(b.door.log) < len(want) || !slices.Equal(b.door.log[:len(want)], want) {
		t.Errorf("order %v, want %v", b.door.log, want)
	}
}

// TestSpellings is G-NM-02: every spelling of a name is one package.
func TestSpellings(t *testing.T) {
	b := newBench(t, nil)
	b.publish(pypitest.Wheel(t, "foo-bar", "1.0"))
	before := len(b.registry.Requests())
	for _, spelling := range []string{"Foo._-Bar", "FOO_BAR", "foo.bar", "foo--bar"} {
		a := b.get("/simple/" + spelling + "/")
		if a.StatusCode != 301 || a.Header.Get("Location") != "/simple/foo-bar/" {
			t.Errorf("%s: %s to %q", spelling, a.Status, a.Header.Get("Location"))
		}
	}
	for _, bad := range []string{"foo%2fbar", "%66oo-bar", "foo%00bar", "-foo", "foo%e9", "f%2e%2e", "foo;bar", "foo%20bar"} {
		a := b.raw(indexHost, "GET /simple/"+bad+"/ HTTP/1.1\r\nHost: index.example\r\n\r\n")
		if a.StatusCode != 400 {
			t.Errorf("%s: %s", bad, a.Status)
		}
	}
	if n := len(b.registry.Requests()); n != before {
		t.Errorf("%d requests went upstream", n-before)
	}
	if len(b.door.Failures()) != 8 {
		t.Errorf("%d refusals recorded, want 8", len(b.door.Failures()))
	}
}

func TestRefusals(t *testing.T) {
	b := newBench(t, nil)
	one, two := pypitest.Wheel(t, "foo", "1.0"), pypitest.Wheel(t, "foo", "2.0")
	b.publish(one, two)
	b.door.rule(func(r pkgref.Ref, _ door.File) policy.Decision {
		if r.Version == "2.0" {
			return policy.Decision{Effect: policy.Deny, Rule: "cap", Reason: "foo 2.0 is over max_version 1.x", Suggest: "x: y"}
		}
		return policy.Decision{Effect: policy.Allow}
	})
	page := b.get("/simple/foo/", "Accept", pypitest.TypeJSON)
	if !strings.Contains(page.body, `"yanked":"Blocked by cofferdam: foo 2.0 is over max_version 1.x"`) || strings.Count(page.body, "yanked") != 1 {
		t.Error(page.body)
	}
	for _, path := range []string{"/p/" + two.File, "/p/" + two.File + ".metadata"} {
		a := b.get(path)
		if a.StatusCode != 403 || a.Status != "403 Blocked by cofferdam: python foo 2.0: foo 2.0 is over max_version 1.x; request "+a.Header.Get("X-Cofferdam-Request")+"; see: cofferdam why" {
			t.Errorf("%s: %s", path, a.Status)
		}
		if a.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(a.body, `"suggest":"x: y"`) || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v\n%s", path, a.Header, a.body)
		}
	}
	if n := b.registry.Count(filesHost + "/p/" + two.File); n != 0 {
		t.Errorf("a refused file was fetched %d times", n)
	}
	if len(b.door.Served()) != 0 {
		t.Errorf("served %v", b.door.Served())
	}
}

// TestNothingIsServedUnrecorded: a door that can't record refuses everything.
func TestNothingIsServedUnrecorded(t *testing.T) {
	b := newBench(t, nil)
	foo := pypitest.Wheel(t, "foo", "1.0")
	b.publish(foo)
	if a := b.get("/p/" + foo.File); a.StatusCode != 200 { // positive control
		t.Fatal(status(a))
	}
	b.door.broken = true
	for _, path := range []string{"/simple/foo/", "/p/" + foo.File, "/p/" + foo.File + ".metadata"} {
		if a := b.get(path); a.StatusCode != http.StatusFailedDependency || strings.Contains(a.body, "PK") {
			t.Errorf("%s: %s", path, status(a))
		}
	}
}

// TestALimitOfTheRunIsTold: a run that used up its records hears that, and not
// that something is broken.
func TestALimitOfTheRunIsTold(t *testing.T) {
	b := newBench(t, nil)
	foo := pypitest.Wheel(t, "foo", "1.0")
	b.publish(foo)
	b.door.broken, b.door.breaks = true, fault.New(fault.ErrForbidden, "run x has made too many records")
	if a := b.get("/p/" + foo.File); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "too many records") {
		t.Error(status(a))
	}
	if a := b.get("/simple/foo/"); a.StatusCode != http.StatusUnavailableForLegalReasons || !strings.Contains(a.body, "too many records") {
		t.Error(status(a))
	}
}

// TestForm is G-SS-04, G-PR-01 and C-NE-13: what is not a plain GET of ours.
func TestForm(t *testing.T) {
	b := newBench(t, nil)
	before := len(b.registry.Requests())
	const host = "Host: index.example\r\n"
	for request, want := range map[string]int{
		"POST /simple/foo/ HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc":                     405,
		"PUT /p/x.whl HTTP/1.1\r\n" + host + "\r\n":                                                  405,
		"DELETE /simple/foo/ HTTP/1.1\r\n" + host + "\r\n":                                           405,
		"PROPFIND / HTTP/1.1\r\n" + host + "\r\n":                                                    405,
		"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n":                        405,
		"GET https://evil.example/ HTTP/1.1\r\nHost: index.example\r\n\r\n":                          400,
		"GET http://169.254.169.254/latest HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n":                400,
		"GET /simple/foo/ HTTP/1.1\r\nHost: evil.example\r\n\r\n":                                    400,
		"GET /simple/foo/ HTTP/1.1\r\nHost: files.example\r\n\r\n":                                   400, // a name of ours, and not this connection's
		"GET /simple/foo/ HTTP/1.1\r\nHost: index.example:8443\r\n\r\n":                              400,
		"GET /simple/foo/ HTTP/1.1\r\nHost: index.example@evil.example\r\n\r\n":                      400,
		"GET /simple/foo/ HTTP/1.1\r\nHost: INDEX.example\r\n\r\n":                                   400,
		"GET /simple/foo/ HTTP/1.1\r\n" + host + host + "\r\n":                                       400,
		"GET /simple/foo/ HTTP/1.1\r\n\r\n":                                                          400,
		"GET /simple/foo/ HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n":       400,
		"GET /simple/foo/ HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx":   400,
		"GET /simple/foo/ HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n": 400,
		"GET /simple/foo/?url=http://127.0.0.1/ HTTP/1.1\r\n" + host + "\r\n":                        400,
		"GET //evil.example/simple/ HTTP/1.1\r\n" + host + "\r\n":                                    400,
		"GET /simple/foo/../../x HTTP/1.1\r\n" + host + "\r\n":                                       400,
		"GET /simple/foo/ HTTP/1.1\r\n" + host + "User-Agent: cofferdam/1\r\n\r\n":                   508,
		"GET /simple/ HTTP/1.1\r\n" + host + "\r\n":                                                  404,
		"GET /pypi/foo/json HTTP/1.1\r\n" + host + "\r\n":                                            404,
		"GET /metrics HTTP/1.1\r\n" + host + "\r\n":                                                  404,
		"GET /simple/foo/ HTTP/1.1\r\n" + host + "X: " + strings.Repeat("x", 1<<17) + "\r\n\r\n":     431,
	} {
		if a := b.raw(indexHost, request); a.StatusCode != want {
			t.Errorf("%.80q: %s, want %d", request, status(a), want)
		}
	}
	if n := len(b.registry.Requests()); n != before {
		t.Errorf("%d requests went upstream", n-before)
	}
}

// TestTraversal is G-PR-03.
func TestTraversal(t *testing.T) {
	b := newBench(t, nil)
	b.publish(pypitest.Wheel(t, "foo", "1.0"))
	for _, path := range []string{
		"/p/..%2ffoo-1.0-py3-none-any.whl", "/p/%2e%2e/foo-1.0-py3-none-any.whl", "/p/..\\foo-1.0-py3-none-any.whl", "/p/foo-1.0-py3-none-any.whl%00",
		"/p/foo-1.0-py3-none-any.whl.metadata.metadata", "/p/foo-1.0-py3-none-any.whl.asc", "/p/foo-1.0-py3-none-any.whl.attestation", "/p//foo-1.0-py3-none-any.whl",
		"/q/foo-1.0-py3-none-any.whl", "/p/foo-1.1-py3-none-any.whl", "/p/foo-1.0-py3-none-ANY.whl",
	} {
		a := b.raw(filesHost, "GET "+path+" HTTP/1.1\r\nHost: files.example\r\n\r\n")
		if a.StatusCode < 400 || a.StatusCode > 424 {
			t.Errorf("%s: %s", path, a.Status)
		}
	}
	if n := b.blobs(); n != 0 {
		t.Errorf("%d blobs", n)
	}
}

func TestTLSIsForOurNamesOnly(t *testing.T) {
	b := newBench(t, nil)
	for _, name := range []string{"evil.example", "sub.index.example", "127.0.0.1"} {
		resp, err := b.client(sandboxA).Get("https://" + name + "/simple/foo/")
		if err == nil {
			resp.Body.Close()
			t.Errorf("the gateway answered for %s: %s", name, resp.Status)
		}
	}
	b.door.mu.Lock()
	defer b.door.mu.Unlock()
	log := strings.Join(b.door.log, "\n")
	for _, name := range []string{"evil.example", "sub.index.example"} {
		if !strings.Contains(log, sandboxA+": network.tls "+name+":443 the ClientHello names "+name) {
			t.Errorf("nothing is on record of %s: %s", name, log)
		}
	}
	if n := len(b.door.failures); n != 1 || b.door.failures[0].ResolvedBy != policy.ByCanonical { // to an address no name is said
		t.Errorf("without a name: %+v", b.door.failures)
	}
}

func TestRangeAndHead(t *testing.T) {
	b := newBench(t, nil)
	foo := pypitest.Wheel(t, "foo", "1.0")
	b.publish(foo)
	head := b.do(sandboxA, http.MethodHead, "https://files.example/p/"+foo.File)
	if head.StatusCode != 200 || head.ContentLength != int64(len(foo.Bytes)) || head.body != "" || len(b.door.Served()) != 0 {
		t.Errorf("HEAD: %s, %d bytes, served %v", head.Status, head.ContentLength, b.door.Served())
	}
	part := b.get("/p/"+foo.File, "Range", "bytes=10-19")
	if part.StatusCode != 206 || part.body != string(foo.Bytes[10:20]) {
		t.Errorf("range: %s", part.Status)
	}
	if len(b.door.Served()) != 1 {
		t.Errorf("a range was served without a record")
	}
	many := b.get("/p/"+foo.File, "Range", "bytes=0-0,2-2,4-4")
	if many.StatusCode != 200 || many.body != string(foo.Bytes) {
		t.Errorf("many ranges: %s", many.Status)
	}
	if n := b.registry.Count(filesHost + "/p/" + foo.File); n != 1 {
		t.Errorf("%d upstream fetches, want 1", n)
	}
}

// TestReasonPhrasesAndKeepAlive: refusals and answers alternate on one
// connection and each has its own phrase.
func TestReasonPhrasesAndKeepAlive(t *testing.T) {
	b := newBench(t, nil)
	foo := pypitest.Wheel(t, "foo", "1.0")
	b.publish(foo)
	c := b.client(sandboxA)
	for range 20 {
		for path, want := range map[string]string{
			"/p/" + foo.File:          "200 OK",
			"/p/nope":                 "404 Not found: the path names neither a project's page nor a distribution file",
			"/p/" + foo.File + ".asc": "404 Not found: the path names neither a project's page nor a distribution file",
		} {
			resp, err := c.Get("https://files.example" + path)
			if err != nil {
				t.Fatal(err)
			}
			var body bytes.Buffer
			if _, err := body.ReadFrom(resp.Body); err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.Status != want {
				t.Errorf("%s: %q, want %q", path, resp.Status, want)
			}
		}
	}
}

// TestOneFetch: however many ask, the upstream is asked once.
func TestOneFetch(t *testing.T) {
	b := newBench(t, nil)
	foo := pypitest.Wheel(t, "foo", "1.0")
	b.publish(foo)
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			c := b.client(string(rune('a' + i)))
			resp, err := c.Get("https://files.example/p/" + foo.File)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			var body bytes.Buffer
			if _, err := body.ReadFrom(resp.Body); err != nil || !bytes.Equal(body.Bytes(), foo.Bytes) {
				t.Errorf("%s, %v", resp.Status, err)
			}
		})
	}
	wg.Wait()
	if n := b.registry.Count(filesHost + "/p/" + foo.File); n != 1 {
		t.Errorf("%d upstream fetches of the file, want 1", n)
	}
	if n := len(b.door.Served()); n != 30 {
		t.Errorf("%d records, want 30", n)
	}
}

// TestUpstreamDown is the second half of G-IN-07: what is cached is served,
// also by a new process.
func TestUpstreamDown(t *testing.T) {
	b := newBench(t, func(c *gateway.Config) { c.Limits.Fresh, c.Limits.Stale = 1, 1 })
	foo := pypitest.Wheel(t, "foo", "1.0")
	b.publish(foo)
	b.get("/p/" + foo.File)
	b.cfg.Upstreams = b.gateway.Upstreams()
	b.registry.Down()
	for _, restarted := range []bool{false, true} {
		if restarted {
			b.restart()
		}
		if a := b.get("/simple/foo/"); a.StatusCode != 200 {
			t.Errorf("restarted=%v: index: %s", restarted, status(a))
		}
		if a := b.get("/p/" + foo.File); a.StatusCode != 200 || a.body != string(foo.Bytes) {
			t.Errorf("restarted=%v: file: %s", restarted, a.Status)
		}
	}
	if a := b.get("/simple/never-seen/"); a.StatusCode != http.StatusFailedDependency {
		t.Errorf("a page that is not cached: %s", status(a))
	}
}

// TestStrangers is G-XC-03: names are not a channel to the outside.
func TestStrangers(t *testing.T) {
	b := newBench(t, func(c *gateway.Config) { c.Limits.RefusedNames = 5 })
	foo := pypitest.Wheel(t, "foo", "1.0")
	b.publish(foo)
	b.get("/simple/foo/")
	before := len(b.registry.Requests())
	for i := range 20 {
		b.get("/simple/leak-" + string(rune('a'+i)) + "/")
	}
	if n := len(b.registry.Requests()) - before; n != 5 {
		t.Errorf("%d names reached the upstream, want 5", n)
	}
	if a := b.get("/simple/leak-z/"); a.StatusCode != 451 || !strings.Contains(a.Status, "too many different packages") {
		t.Error(status(a))
	}
	if a := b.get("/simple/foo/"); a.StatusCode != 200 {
		t.Errorf("a package that it may have: %s", a.Status)
	}
	if a := b.do("sb-b", http.MethodGet, "https://index.example/simple/foo/"); a.StatusCode != 200 {
		t.Errorf("another run: %s", a.Status)
	}
	if n := len(b.door.Failures()); n != 21 {
		t.Errorf("%d refusals recorded, want 21", n)
	}
}

// TestStrangersThatExist: names of files that exist and are refused are no less
// of a channel: whoever reads them at the other end made them.
func TestStrangersThatExist(t *testing.T) {
	b := newBench(t, func(c *gateway.Config) { c.Limits.RefusedNames = 5 })
	b.door.rule(func(p pkgref.Ref, _ door.File) policy.Decision {
		if p.Name == "foo" {
			return policy.Decision{Effect: policy.Allow}
		}
		return policy.Decision{Effect: policy.Deny, Reason: p.Name + " is not on the allowlist"}
	})
	foo := pypitest.Wheel(t, "foo", "1.0")
	b.publish(foo)
	before := len(b.registry.Requests())
	for i := range 20 {
		leak := pypitest.Wheel(t, "leak"+string(rune('a'+i)), "1.0")
		b.publish(leak)
		if a := b.do(sandboxA, http.MethodGet, "https://"+filesHost+"/p/"+leak.File); a.StatusCode != http.StatusForbidden {
			t.Fatal(status(a))
		}
	}
	if n := len(b.registry.Requests()) - before; n != 5 {
		t.Errorf("%d names reached the upstream, want 5", n)
	}
	if a := b.do(sandboxA, http.MethodGet, "https://"+filesHost+"/p/"+foo.File); a.StatusCode != http.StatusForbidden {
		t.Errorf("a new name after that: %s", status(a))
	}
	if a := b.do("sb-b", http.MethodGet, "https://"+filesHost+"/p/"+foo.File); a.StatusCode != http.StatusOK {
		t.Errorf("another run: %s", status(a))
	}
}

func TestRateLimit(t *testing.T) {
	b := newBench(t, func(c *gateway.Config) { c.Limits.Requests, c.Limits.Queue = 1, 1 })
	b.publish(pypitest.Wheel(t, "foo", "1.0"))
	limited := false
	for range 10 {
		limited = limited || b.get("/simple/foo/").StatusCode == 429
	}
	if !limited {
		t.Error("ten requests at once passed a limit of one per second")
	}
	if a := b.do("sb-b", http.MethodGet, "https://index.example/simple/foo/"); a.StatusCode != 200 {
		t.Errorf("another run: %s", a.Status)
	}
}

// TestAborted: a client that goes away is recorded, and the fetch goes on.
func TestAborted(t *testing.T) {
	b := newBench(t, nil)
	big := pypitest.Wheel(t, "big", "1.0")
	big.Bytes = wheelOf(t, "big-1.0.dist-info/", [][2]string{
		{"big-1.0.dist-info/METADATA", string(big.Metadata)},
		{"big-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n"},
		{"noise", strings.Repeat("0123456789abcdef", 1<<18)},
		{"noise2", randomText(8 << 20)},
	})
	b.publish(big)
	resp, err := b.client(sandboxA).Get("https://files.example/p/" + big.File)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	b.eventually("the abort is recorded", func() bool {
		b.door.mu.Lock()
		defer b.door.mu.Unlock()
		return len(b.door.aborted) == 1 && b.door.aborted[0] < int64(len(big.Bytes))
	})
}

// TestServedSaysWhatIsSent: an answer without the file, or with a part of it, is
// on record as that, and HEAD is none; what was sent whole is told to the door.
func TestServedSaysWhatIsSent(t *testing.T) {
	b := newBench(t, nil)
	foo := pypitest.Wheel(t, "foo", "1.0")
	b.publish(foo)
	path, tag := "/p/"+foo.File, `"sha256:`+strings.TrimPrefix(foo.Digest(), "sha256:")+`"`
	whole := fmt.Sprintf("bytes 0-9/%d", len(foo.Bytes))
	var want []string
	for _, c := range []struct {
		method, part  string
		status, bytes int
		header        []string
	}{
		{http.MethodGet, "", 200, len(foo.Bytes), nil},
		{http.MethodGet, whole, 206, 10, []string{"Range", "bytes=0-9"}},
		{http.MethodGet, "", 200, len(foo.Bytes), []string{"Range", "bytes=0-9,20-29"}},
		{http.MethodGet, "", 200, len(foo.Bytes), []string{"Range", "bytes=0-9", "If-Range", `"other"`}},
		{http.MethodGet, "nothing, the client has it", 304, 0, []string{"If-None-Match", tag}},
		{http.MethodGet, "nothing, the answer has status 416", 416, -1, []string{"Range", "bytes=99999999-"}},
		{http.MethodHead, "none", 200, 0, nil},
	} {
		a := b.do(sandboxA, c.method, "https://"+filesHost+path, c.header...)
		if a.StatusCode != c.status || c.bytes >= 0 && len(a.body) != c.bytes {
			t.Errorf("%s with %v: %d, %d bytes", c.method, c.header, a.StatusCode, len(a.body))
		}
		if c.part != "none" {
			want = append(want, c.part)
		}
	}
	b.eventually("all that was served is told to be sent", func() bool {
		b.door.mu.Lock()
		defer b.door.mu.Unlock()
		return len(b.door.sent) == len(want) && len(b.door.aborted) == 0
	})
	var got []string
	for _, ask := range b.door.Served() {
		got = append(got, ask.Part)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the records say %q, want %q", got, want)
	}
}

// wheelOf packs a wheel with the RECORD of its files.
func wheelOf(t *testing.T, info string, files [][2]string) []byte {
	t.Helper()
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256([]byte(f[1]))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f[0], base64.RawURLEncoding.EncodeToString(sum[:]), len(f[1]))
	}
	return pypitest.Zip(t, append(files, [2]string{info + "RECORD", record.String() + info + "RECORD,,\n"})...)
}

// randomText is text that does not pack well.
func randomText(n int) string {
	var b strings.Builder
	x := uint32(1)
	for b.Len() < n {
		x = x*1664525 + 1013904223
		b.WriteByte(byte(x >> 24))
	}
	return b.String()
}
