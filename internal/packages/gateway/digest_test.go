package gateway_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// TestDigests is G-IN-02: whatever algorithm the index gives, the bytes are
// compared with it before anybody sees them; our own sums are told.
func TestDigests(t *testing.T) {
	good := toyPackage{Name: "foo", Version: "1.0.0"}
	other := toyPackage{Name: "foo", Version: "1.0.0", Findings: []string{"other bytes"}}.bytes()
	body := good.bytes()
	for name, digest := range map[string]string{"sha256": sha256Of(body), "sha512": sha512Of(body), "sha1": sha1Of(body), "none": ""} {
		t.Run(name, func(t *testing.T) {
			b := newToyBench(t, newToy(pkgref.Node), nil)
			b.list(indexHost, "foo", toyFile{Version: "1.0.0", Digest: digest})
			b.file(indexHost, good)
			for range 2 { // from the upstream, and from the cache
				if a := b.get("/foo/1.0.0.pkg"); a.StatusCode != 200 || a.body != string(body) {
					t.Fatal(status(a))
				}
			}
			if n := b.registry.Count(indexHost + "/foo/1.0.0.pkg"); n != 1 {
				t.Errorf("fetched %d times", n)
			}
			want := slices.Compact(slices.DeleteFunc([]string{digest, sha256Of(body), sha512Of(body)}, func(s string) bool { return s == "" }))
			if digest == sha512Of(body) {
				want = want[:2]
			}
			for _, s := range b.door.Served() {
				if !slices.Equal(s.Digests, want) || s.File.Digest != digest || "sha256:"+s.SHA256 != sha256Of(body) {
					t.Errorf("served with the digests %v, want %v", s.Digests, want)
				}
			}
		})
		if digest == "" {
			continue
		}
		t.Run(name+" of other bytes", func(t *testing.T) {
			b := newToyBench(t, newToy(pkgref.Node), nil)
			b.list(indexHost, "foo", toyFile{Version: "1.0.0", Digest: digest})
			b.registry.Script(indexHost+"/foo/1.0.0.pkg", bodyOf(other))
			refusedWithRecord(t, b, b.get("/foo/1.0.0.pkg"), 0)
			b.file(indexHost, good)
			if a := b.get("/foo/1.0.0.pkg"); a.StatusCode != 200 {
				t.Errorf("after the lie: %s", status(a))
			}
		})
	}
	for _, digest := range []string{"sha384:" + strings.Repeat("0", 96), "md5:" + strings.Repeat("0", 32), "h1:x"} {
		b := newToyBench(t, newToy(pkgref.Node), nil)
		b.list(indexHost, "foo", toyFile{Version: "1.0.0", Digest: digest})
		b.file(indexHost, good)
		refusedWithRecord(t, b, b.get("/foo/1.0.0.pkg"), 0)
	}
}

// TestChangedDigests is G-IN-01 and the downgrades of G-IN-02: what an index
// may say later of a file that was had.
func TestChangedDigests(t *testing.T) {
	body := toyPackage{Name: "foo", Version: "1.0.0"}.bytes()
	later := toyPackage{Name: "foo", Version: "1.0.0", Findings: []string{"changed"}}.bytes()
	const other, weaker = "not the one that it had when it was first seen", "a stronger digest for it when it was first seen"
	for name, c := range map[string]struct {
		first, then string
		bytes       []byte // of the upstream then
		refused     string
	}{
		"a stronger one of the same bytes":    {sha1Of(body), sha512Of(body), body, ""},
		"one where there was none":            {"", sha512Of(body), body, ""},
		"a weak one where there was none":     {"", sha1Of(body), body, ""},
		"another strong one":                  {sha512Of(body), sha256Of(body), body, ""},
		"the digest of other bytes":           {sha512Of(body), sha512Of(later), later, other},
		"a stronger one of other bytes":       {sha1Of(body), sha512Of(later), later, other},
		"a strong one where there was none":   {"", sha256Of(later), later, other},
		"a weak one of other bytes":           {"", sha1Of(later), later, ""}, // by the sha1 below
		"a weaker one of the same bytes":      {sha512Of(body), sha1Of(body), body, weaker},
		"none any more":                       {sha256Of(body), "", body, weaker},
		"no weak one any more":                {sha1Of(body), "", body, weaker},
		"none, as before, and other bytes":    {"", "", later, other},
		"a weak one, and then of other bytes": {sha1Of(body), sha1Of(later), later, other},
	} {
		for _, emptied := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				b := newToyBench(t, newToy(pkgref.Node), func(b *bench, _ *upstream.Config) { alwaysAsking(&b.cfg) })
				b.list(indexHost, "foo", toyFile{Version: "1.0.0", Digest: c.first})
				b.registry.Script(indexHost+"/foo/1.0.0.pkg", bodyOf(body))
				if a := b.get("/foo/1.0.0.pkg"); a.StatusCode != 200 {
					t.Fatal(status(a))
				}
				if emptied {
					must(t, os.RemoveAll(filepath.Join(b.cfg.CacheDir, "blobs")))
				}
				b.restart()
				b.list(indexHost, "foo", toyFile{Version: "1.0.0", Digest: c.then})
				b.registry.Script(indexHost+"/foo/1.0.0.pkg", bodyOf(c.bytes))
				a := b.get("/foo/1.0.0.pkg")
				// A cached file that is what the index says now needs no upstream.
				good := c.refused == "" && string(c.bytes) == string(body) || c.then == "" && c.first == "" && !emptied
				switch {
				case good && (a.StatusCode != 200 || a.body != string(body)):
					t.Errorf("emptied=%v: %s", emptied, status(a))
				case !good && (a.StatusCode != http.StatusFailedDependency || !strings.Contains(a.Status, c.refused)):
					t.Errorf("emptied=%v: %s", emptied, status(a))
				case !good && len(b.door.Served()) != 1:
					t.Errorf("emptied=%v: served %v", emptied, b.door.Served())
				}
				if n := b.blobs(); n > 1 || (!good && emptied && n > 0) {
					t.Errorf("emptied=%v: the cache holds %d blobs", emptied, n)
				}
			})
		}
	}
}

// TestAddressedFiles: a release that the index does not list, or of which there
// is no index, is had by its address; its first bytes count for ever.
func TestAddressedFiles(t *testing.T) {
	b := newToyBench(t, addressed{newToy(pkgref.Rust)}, nil)
	b.list(indexHost, "foo", toyFile{Version: "2.0.0"})
	body := b.file(indexHost, toyPackage{Name: "foo", Version: "1.0.0"})
	b.file(indexHost, toyPackage{Name: "bar", Version: "1.0.0"}) // has no page
	for _, path := range []string{"/foo/1.0.0.pkg", "/bar/1.0.0.pkg", "/foo/1.0.0.pkg"} {
		if a := b.get(path); a.StatusCode != 200 {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	served := b.door.Served()
	if len(served) != 3 || served[0].File.Digest != "" || served[0].File.FirstSeen.IsZero() || !served[0].File.Published.IsZero() {
		t.Fatalf("served %+v", served)
	}
	b.restart()
	b.get("/foo/1.0.0.pkg")
	if again := b.door.Served()[3]; again.File.FirstSeen.After(served[2].File.FirstSeen) {
		t.Errorf("it was first seen at %v and is said to have been at %v", served[2].File.FirstSeen, again.File.FirstSeen)
	}
	if a := newToyBench(t, newToy(pkgref.Node), nil).get("/foo/1.0.0.pkg"); a.StatusCode != 404 { // negative control
		t.Errorf("a file without an address: %s of %d bytes", a.Status, len(body))
	}
}

// TestSourcesWithoutProbes: not every index has files elsewhere to learn of.
func TestSourcesWithoutProbes(t *testing.T) {
	b := newToyBench(t, newToy(pkgref.Node), nil)
	if n := len(b.registry.Requests()); n != 0 || !b.gateway.IsRegistry(indexHost) || !b.gateway.IsRegistry(gateway.DownloadsName) {
		t.Errorf("%d requests at the start; names %v", n, b.gateway.Names())
	}
}
