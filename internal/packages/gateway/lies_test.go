package gateway_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// refusedWithRecord checks what must hold of every lie: the client got a
// refusal that says why, the log a record, the cache nothing.
func refusedWithRecord(t *testing.T, b *bench, a answer, before int) {
	t.Helper()
	if a.StatusCode != http.StatusFailedDependency && a.StatusCode != http.StatusNotFound {
		t.Errorf("the client got %s", status(a))
	}
	if !strings.Contains(a.Status, "request f-") {
		t.Errorf("the refusal names no record: %s", a.Status)
	}
	if n := len(b.door.Failures()); n != before+1 {
		t.Errorf("%d failures recorded, want %d", n, before+1)
	}
	if n := len(b.door.Served()); n != 0 {
		t.Errorf("something was recorded as served: %v", b.door.Served())
	}
	if n := b.blobs(); n != 0 {
		t.Errorf("the cache holds %d blobs", n)
	}
}

// TestLyingIndex is G-IN-05, -07, -08 and G-SS-01, -02 for index pages.
func TestLyingIndex(t *testing.T) {
	const mt = pypitest.TypeJSON
	foo := pypitest.Wheel(t, "foo", "1.0")
	json := func(s string) liar.Reply { return liar.Body(mt, []byte(s)) }
	for name, reply := range map[string]liar.Reply{
		"html":           liar.Body(mt, []byte("<html>log in</html>")),
		"captive page":   liar.Body("text/html", []byte("<html><a href=\"/login\">log in</a></html>")),
		"plain text":     liar.Body("text/plain", []byte("hello")),
		"duplicate key":  json(`{"meta":{"api-version":"1.1"},"name":"foo","name":"foo","files":[]}`),
		"deep nesting":   json(strings.Repeat(`{"a":`, 100_000)),
		"deep, closed":   json(`{"x":` + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000) + "}"),
		"invalid utf-8":  json("{\"meta\":{\"api-version\":\"1.1\"},\"name\":\"foo\",\"x\":\"\xff\",\"files\":[]}"),
		"bom":            json("\xef\xbb\xbf{}"),
		"huge number":    json(`{"meta":{"api-version":"1.1"},"name":"foo","files":[{"filename":"foo-1.0.tar.gz","url":"x","hashes":{},"size":` + strings.Repeat("9", 1000) + `}]}`),
		"another name":   liar.Body(mt, pypitest.Page(t, "bar", foo)),
		"gzip bomb":      liar.Bomb(mt, 7<<20),
		"10^6 versions":  liar.Stream(mt, manyVersions),
		"500 MB":         liar.Stream(mt, func(int) []byte { return bytes.Repeat([]byte(" "), 1<<20) }),
		"206":            liar.Partial(mt, pypitest.Page(t, "foo", foo)),
		"short body":     liar.Claim(mt, 1000, []byte("{")),
		"cut":            liar.Cut(),
		"chunked, cut":   liar.Chunked(mt, []byte("{")),
		"drip":           liar.Drip(mt, 1<<20, 5*time.Millisecond),
		"head drips":     liar.HeadDrip(5 * time.Millisecond),
		"silence":        liar.Silence(),
		"500":            liar.Status(500),
		"429":            liar.Busy(429, 3600),
		"401":            liar.Status(401),
		"to elsewhere":   liar.Redirect("https://evil.example/simple/foo/"),
		"to loopback":    liar.Redirect("http://127.0.0.1/"),
		"to metadata":    liar.Redirect("http://169.254.169.254/latest/"),
		"to a file":      liar.Redirect("file:///etc/passwd"),
		"does not exist": liar.Status(404),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(c *gateway.Config) { slowly(c, name) })
			b.page("foo", reply)
			refusedWithRecord(t, b, b.get("/simple/foo/", "Accept", mt), 0)
			if n := b.registry.Count("evil.example/simple/foo/"); n != 0 {
				t.Error("the evil host was asked")
			}
			pages, err := os.ReadDir(filepath.Join(b.cfg.CacheDir, "pages"))
			if err != nil || len(pages) != 1 { // the probe's
				t.Errorf("%d pages kept, %v", len(pages), err)
			}
			b.publish(foo) // positive control: the truth is taken at once
			if a := b.get("/simple/foo/"); a.StatusCode != 200 {
				t.Errorf("after the lie: %s", status(a))
			}
		})
	}
}

// manyVersions is an index of a million releases.
func manyVersions(i int) []byte {
	switch {
	case i == 0:
		return []byte(`{"meta":{"api-version":"1.0"},"name":"foo","files":[`)
	case i > 1_000_000:
		return nil
	}
	return fmt.Appendf(nil, `{"filename":"foo-%d.tar.gz","url":"https://files.example/foo-%d.tar.gz","hashes":{}},`, i, i)
}

// TestLyingFile is G-IN-02, -05, -07 and G-SS-02 for artifacts and sidecars.
func TestLyingFile(t *testing.T) {
	foo := pypitest.Wheel(t, "foo", "1.0")
	other := pypitest.Wheel(t, "foo", "1.0", "evil")
	flipped := bytes.Clone(foo.Bytes)
	flipped[len(flipped)/2] ^= 1
	const mt = "application/zip"
	lies := map[string]liar.Reply{
		"another file":  liar.Body(mt, other.Bytes),
		"flipped bit":   liar.Body(mt, flipped),
		"short":         liar.Body(mt, foo.Bytes[:len(foo.Bytes)-1]),
		"long":          liar.Body(mt, append(bytes.Clone(foo.Bytes), 0)),
		"empty":         liar.Body(mt, nil),
		"html":          liar.Body("text/html", []byte("<html>")),
		"packed":        liar.Gzip(mt, foo.Bytes, 1),
		"206":           liar.Partial(mt, foo.Bytes),
		"cut":           liar.Claim(mt, len(foo.Bytes), foo.Bytes[:10]),
		"endless":       liar.Stream(mt, func(int) []byte { return make([]byte, 1<<16) }),
		"drip":          liar.Drip(mt, len(foo.Bytes), 10*time.Millisecond),
		"silence":       liar.Silence(),
		"502":           liar.Status(502),
		"404":           liar.Status(404),
		"to elsewhere":  liar.Redirect("https://evil.example/x"),
		"to loopback":   liar.Redirect("https://127.0.0.1/x"),
		"to plain http": liar.Redirect("http://files.example/x"),
	}
	for name, reply := range lies {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(c *gateway.Config) { slowly(c, name) })
			b.publish(foo)
			b.registry.Script(filesHost+"/p/"+foo.File, reply)
			refusedWithRecord(t, b, b.get("/p/"+foo.File), 0)
			b.publish(foo)
			if a := b.get("/p/" + foo.File); a.StatusCode != 200 || a.body != string(foo.Bytes) {
				t.Errorf("after the lie: %s", status(a))
			}
		})
		t.Run(name+" as sidecar", func(t *testing.T) {
			b := newBench(t, func(c *gateway.Config) { slowly(c, name) })
			b.publish(foo)
			b.registry.Script(filesHost+"/p/"+foo.File, reply)
			b.registry.Script(filesHost+"/p/"+foo.File+".metadata", reply)
			refusedWithRecord(t, b, b.get("/p/"+foo.File+".metadata"), 0)
		})
	}
}

// TestDisagreeingMetadata: what the resolver sees must be what is installed.
func TestDisagreeingMetadata(t *testing.T) {
	good, other := pypitest.Wheel(t, "foo", "1.0"), pypitest.Wheel(t, "foo", "1.0", "hidden")
	renamed := pypitest.Wheel(t, "foo", "2.0")
	renamed.File, renamed.Version = good.File, "1.0"
	direct := pypitest.Wheel(t, "foo", "1.0", "x @ https://evil.example/x.whl")
	broken := good
	broken.Bytes = []byte("PK not a zip")
	for name, d := range map[string]pypitest.Dist{
		"sidecar differs from the wheel": {Name: "foo", File: good.File, Bytes: good.Bytes, Metadata: other.Metadata},
		"wheel of another release":       renamed,
		"requires a URL":                 direct,
		"not a wheel":                    broken,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.publish(d)
			a := b.get("/p/" + good.File)
			if a.StatusCode != http.StatusFailedDependency || len(b.door.Failures()) != 1 || len(b.door.Served()) != 0 || len(b.door.edges) != 0 {
				t.Errorf("%s; failures %v, edges %v", status(a), b.door.Failures(), b.door.edges)
			}
		})
	}
}

// TestFirstDigestIsForEver is G-IN-01: a re-upload is refused and recorded,
// also after a restart and with an empty cache.
func TestFirstDigestIsForEver(t *testing.T) {
	b := newBench(t, func(c *gateway.Config) { c.Limits.Fresh, c.Limits.Stale = 1, 1 })
	one := pypitest.Wheel(t, "foo", "1.0")
	b.publish(one)
	if a := b.get("/p/" + one.File); a.StatusCode != 200 {
		t.Fatal(status(a))
	}
	two := pypitest.Wheel(t, "foo", "1.0", "evil")
	b.publish(two)
	for range 2 {
		for _, path := range []string{"/p/" + one.File, "/p/" + one.File + ".metadata"} {
			a := b.get(path)
			if a.StatusCode != http.StatusFailedDependency || !strings.Contains(a.Status, "not the one that it had when it was first seen") {
				t.Errorf("%s: %s", path, status(a))
			}
		}
		if n := len(b.door.Served()); n != 1 {
			t.Errorf("%d served, want the first only", n)
		}
		must(t, os.RemoveAll(filepath.Join(b.cfg.CacheDir, "blobs")))
		b.restart()
	}
	if n := len(b.door.Failures()); n != 4 {
		t.Errorf("%d failures recorded, want 4", n)
	}
	b.publish(one)
	if a := b.get("/p/" + one.File); a.StatusCode != 200 || a.body != string(one.Bytes) {
		t.Errorf("the first file again: %s", status(a))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPoisonedCache is G-IN-04 at the gateway; the ways are in package cache.
func TestPoisonedCache(t *testing.T) {
	b := newBench(t, nil)
	foo := pypitest.Wheel(t, "foo", "1.0")
	b.publish(foo)
	b.get("/p/" + foo.File)
	path := filepath.Join(b.cfg.CacheDir, "blobs", foo.Digest()[:2], foo.Digest())
	evil := bytes.Clone(foo.Bytes)
	evil[40] ^= 1
	must(t, os.WriteFile(path, evil, 0o600))
	a := b.get("/p/" + foo.File)
	if a.StatusCode != 200 || a.body != string(foo.Bytes) {
		t.Errorf("after the poisoning: %s", a.Status)
	}
	if f := b.door.Failures(); len(f) != 1 || !strings.Contains(f[0].Reason, "changed on the disk") {
		t.Errorf("failures %+v", f)
	}
}

// TestForeignURLs is G-SS-01: whatever an index links to, only its own hosts
// are asked, and a file on another can't be had.
func TestForeignURLs(t *testing.T) {
	for _, link := range []string{
		"http://127.0.0.1/foo-1.0-py3-none-any.whl", "https://169.254.169.254/foo-1.0-py3-none-any.whl", "https://10.0.0.1/foo-1.0-py3-none-any.whl",
		"file:///foo-1.0-py3-none-any.whl", "gopher://index.example/foo-1.0-py3-none-any.whl", "https://evil.example/foo-1.0-py3-none-any.whl",
		"https://index.example:1/foo-1.0-py3-none-any.whl", "https://[::1]/foo-1.0-py3-none-any.whl", "https://user:pw@files.example/foo-1.0-py3-none-any.whl",
		"//evil.example/foo-1.0-py3-none-any.whl", "http://files.example/foo-1.0-py3-none-any.whl",
	} {
		t.Run(link, func(t *testing.T) {
			b := newBench(t, nil)
			foo := pypitest.Wheel(t, "foo", "1.0")
			foo.URL = link
			b.page("foo", liar.Body(pypitest.TypeJSON, pypitest.Page(t, "foo", foo)))
			a := b.get("/simple/foo/", "Accept", pypitest.TypeJSON)
			if a.StatusCode != http.StatusFailedDependency || strings.Contains(a.body, "http:") || strings.Contains(a.body, "evil") {
				t.Errorf("index: %s", status(a))
			}
			for _, r := range b.registry.Requests() {
				if r.Host != indexHost {
					t.Errorf("a request went to %s%s", r.Host, r.Path)
				}
			}
		})
	}
}
