package gateway_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// alwaysAsking asks the upstream about a page each time.
func alwaysAsking(c *gateway.Config) { c.Limits.Fresh, c.Limits.Stale = 1, 1 }

func digit(c string) string { return "sha512:" + strings.Repeat(c, 128) }

// TestPagesAreReadOnce: neither a restart nor an unchanged page makes the
// gateway read an upstream's page again.
func TestPagesAreReadOnce(t *testing.T) {
	b, p := newBulk(t, nil)
	b.bulkPage("a", "1.0.0 - "+digit("1")+" one", "2.0.0 - - two")
	want := b.bulkGet("a")
	if want.StatusCode != 200 || want.body != "1.0.0 - "+digit("1")+" one\n2.0.0 - - two\n" {
		t.Fatal(status(want))
	}
	b.restart()
	if got := b.bulkGet("a"); got.body != want.body {
		t.Errorf("after a restart: %s", status(got))
	}
	if n := b.registry.Count(bulkHost + "/a"); n != 1 || p.parsed.Load() != 1 {
		t.Errorf("%d requests, read %d times", n, p.parsed.Load())
	}
	alwaysAsking(&b.cfg)
	b.restart()
	want = b.bulkGet("a") // a gateway has tags of its own
	if got := b.bulkGet("a"); got.body != want.body || got.Header.Get("ETag") != want.Header.Get("ETag") {
		t.Errorf("the same bytes again: %s", status(got))
	}
	if n := b.registry.Count(bulkHost + "/a"); n != 3 || p.parsed.Load() != 1 {
		t.Errorf("%d requests, read %d times", n, p.parsed.Load())
	}
	b.bulkPage("a", "1.0.0 - "+digit("1")+" one")
	if got := b.bulkGet("a"); got.body == want.body || p.parsed.Load() != 2 {
		t.Errorf("a changed page: %s", status(got))
	}
}

// TestConfirmedPages: the upstream is asked with its own ETag.
func TestConfirmedPages(t *testing.T) {
	b, p := newBulk(t, alwaysAsking)
	const etag = `"v1"`
	b.registry.Script(bulkHost+"/a", liar.With(200, map[string][]string{"Content-Type": {bulkType}, "Etag": {etag}}, []byte("1.0.0 - - x\n")), liar.Status(304))
	want := b.bulkGet("a")
	for range 2 {
		if got := b.bulkGet("a"); got.StatusCode != 200 || got.body != want.body {
			t.Error(status(got))
		}
		b.restart()
	}
	requests := b.registry.Requests()
	if len(requests) != 3 || requests[1].Header.Get("If-None-Match") != etag || requests[2].Header.Get("If-None-Match") != etag || p.parsed.Load() != 1 {
		t.Errorf("%d requests, read %d times", len(requests), p.parsed.Load())
	}
}

// TestHostsOfAPage: what is listed follows the file hosts that are known, and
// so does the digest that verdicts are remembered by.
func TestHostsOfAPage(t *testing.T) {
	b, p := newBulk(t, nil)
	b.bulkPage("a", "1.0.0 - - here", "2.0.0 - - at "+filesHost)
	if got := b.bulkGet("a"); got.body != "1.0.0 - - here\n" {
		t.Fatal(status(got))
	}
	before := b.door.LastAsk()
	b.cfg.Upstreams[0].FileHosts = []string{b.registry.Host(filesHost)}
	b.restart()
	if got := b.bulkGet("a"); got.body != "1.0.0 - - here\n2.0.0 - - at "+filesHost+"\n" {
		t.Error(status(got))
	}
	if after := b.door.LastAsk(); after.IndexDigest == before.IndexDigest || len(after.Files) != 2 || len(before.Files) != 1 {
		t.Errorf("%d files under %s, then %d under %s", len(before.Files), before.IndexDigest, len(after.Files), after.IndexDigest)
	}
	if n := b.registry.Count(bulkHost + "/a"); n != 1 || p.parsed.Load() != 1 {
		t.Errorf("%d requests, read %d times", n, p.parsed.Load())
	}
}

// TestWhereAPageCameFrom: links are read from there, so the same bytes from
// another place are another page.
func TestWhereAPageCameFrom(t *testing.T) {
	b, _ := newBulk(t, alwaysAsking)
	page := liar.With(200, map[string][]string{"Content-Type": {bulkType}}, []byte("1.0.0 - - x\n"))
	b.registry.Script(bulkHost+"/a", page, liar.Redirect(b.registry.URL(bulkHost, "/moved/a")))
	b.registry.Script(bulkHost+"/moved/a", page)
	b.bulkGet("a")
	before := b.door.LastAsk().IndexDigest
	b.bulkGet("a")
	if after := b.door.LastAsk().IndexDigest; after == before {
		t.Error("one digest for a page from two places")
	}
}

// TestWhatTheDoorIsTold: the upstream and the files' facts.
func TestWhatTheDoorIsTold(t *testing.T) {
	b, _ := newBulk(t, nil)
	b.bulkPage("a", "1.0.0 2026-01-02T03:04:05+01:00 - x")
	b.bulkGet("a")
	ask := b.door.LastAsk()
	if ask.Upstream != b.cfg.Upstreams[0].Index || ask.SourceURL != ask.Upstream+"a" || ask.Toolchain {
		t.Errorf("%+v", ask)
	}
	if f := ask.Files[0]; !f.Published.Equal(time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC)) || f.FirstSeen.IsZero() || f.Name != "a-1.0.0.tgz" || f.Kind != policy.KindPackage {
		t.Errorf("%+v", f)
	}
}

// TestFilesKeepTheirTimes: a file has the time at which it was first listed,
// and the time of publication that it had then, whatever the registry says
// later, also after a restart; other bytes are another file.
func TestFilesKeepTheirTimes(t *testing.T) {
	b, _ := newBulk(t, alwaysAsking)
	var first []door.File
	for i, c := range []struct {
		lines     []string
		published []string
		seen      []bool // before
	}{
		{[]string{"1.0.0 2026-01-01T00:00:00Z " + digit("1"), "2.0.0 - " + digit("2")}, []string{"2026-01-01", "0001-01-01"}, []bool{false, false}},
		{[]string{"1.0.0 2020-01-01T00:00:00Z " + digit("1"), "2.0.0 2026-02-01T00:00:00Z " + digit("2")}, []string{"2026-01-01", "2026-02-01"}, []bool{true, true}},
		{[]string{"1.0.0 - " + digit("1"), "2.0.0 2020-01-01T00:00:00Z " + digit("2")}, []string{"2026-01-01", "2026-02-01"}, []bool{true, true}},
		{[]string{"1.0.0 2026-03-01T00:00:00Z " + digit("3"), "2.0.0 2020-01-01T00:00:00Z -"}, []string{"2026-03-01", "2026-02-01"}, []bool{false, true}},
	} {
		b.bulkPage("a", c.lines...)
		if a := b.bulkGet("a"); a.StatusCode != 200 {
			t.Fatal(status(a))
		}
		files := b.door.LastAsk().Files
		if first == nil {
			first = files
			// Back into the past, so that what is seen now differs from it.
			b.age(t, "a", 24*time.Hour)
			for i := range first {
				first[i].FirstSeen = first[i].FirstSeen.Add(-24 * time.Hour)
			}
		}
		for j, f := range files {
			if got := f.Published.Format(time.DateOnly); got != c.published[j] {
				t.Errorf("%d: %s was published %s, want %s", i, f.Name, got, c.published[j])
			}
			if seen := f.FirstSeen.Equal(first[j].FirstSeen); i > 0 && seen != c.seen[j] {
				t.Errorf("%d: %s was first seen %s, at first %s; want the same: %v", i, f.Name, f.FirstSeen, first[j].FirstSeen, c.seen[j])
			}
		}
		b.restart()
	}
}

// age rewrites a kept page as one of some time ago, in the format of another
// version: then its files' times are all that counts of it.
func (b *bench) age(t *testing.T, project string, by time.Duration) {
	t.Helper()
	must(t, b.gateway.Close())
	s, err := cache.Open(b.cfg.CacheDir, cache.Limits{Reserve: 1})
	must(t, err)
	k := cache.PageKey{Ecosystem: string(pkgref.Node), Upstream: b.cfg.Upstreams[0].Index, Project: project}
	var text []byte
	p, err := s.GetPage(k, func(from io.Reader) (err error) {
		text, err = io.ReadAll(from)
		return err
	})
	must(t, err)
	now := b.door.LastAsk().Files[0].FirstSeen
	aged := strings.ReplaceAll(string(text), now.Format(time.RFC3339), now.Add(-by).Format(time.RFC3339))
	if aged == string(text) {
		t.Fatalf("no time in %s", text)
	}
	p.Format = -1
	w := s.CreatePage()
	defer w.Close()
	_, err = w.Commit(k, p, func(to io.Writer) error {
		_, err := io.WriteString(to, aged)
		return err
	})
	must(t, err)
	b.start()
}

// TestDamagedPagesAreHadAgain: by a new process, and by one that has the index
// in memory and needs the rows.
func TestDamagedPagesAreHadAgain(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string){
		"rows":  func(t *testing.T, path string) { t.Helper(); flip(t, path, 3) },
		"index": func(t *testing.T, path string) { t.Helper(); flip(t, path, 60) },
		"gone":  func(t *testing.T, path string) { t.Helper(); must(t, os.Remove(path)) },
		"empty": func(t *testing.T, path string) { t.Helper(); must(t, os.Truncate(path, 0)) },
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s restarted=%v", name, restarted), func(t *testing.T) {
				b, p := newBulk(t, nil)
				b.bulkPage("a", "1.0.0 - - some row", "2.0.0 - - another row")
				want := b.bulkGet("a")
				paths, err := filepath.Glob(filepath.Join(b.cfg.CacheDir, "pages", "*"))
				must(t, err)
				if len(paths) != 1 {
					t.Fatalf("pages %v", paths)
				}
				damage(t, paths[0])
				if restarted {
					b.restart()
				}
				b.door.rule(allowAll) // another epoch: it has to be rendered again
				got := b.bulkGet("a")
				if got.StatusCode != 200 || got.body != want.body {
					t.Errorf("%s", status(got))
				}
				if p.parsed.Load() != 2 {
					// Without its index the file is of no use to a new process only.
					if name != "index" || restarted {
						t.Errorf("read %d times", p.parsed.Load())
					}
				}
				if name == "rows" && b.door.LastAsk().Files[0].FirstSeen.IsZero() {
					t.Error("its files' times are lost")
				}
			})
		}
	}
}

func flip(t *testing.T, path string, at int) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	data[at] ^= 1
	must(t, os.WriteFile(path, data, 0o600))
}

// TestEvictionWhileRendering: a page that is evicted while it is rendered is
// rendered to its end, and had again when it is wanted again.
func TestEvictionWhileRendering(t *testing.T) {
	b, p := newBulk(t, func(c *gateway.Config) { c.Limits.Cache.MaxPageBytes = 1 })
	lines := []string{"1.0.0 - - " + randomText(2000), "2.0.0 - - x"}
	for i := range lines {
		lines[i] = strings.ToValidUTF8(strings.ReplaceAll(strings.ReplaceAll(lines[i], "\n", ""), "\r", ""), "")
	}
	b.bulkPage("a", lines...)
	b.bulkPage("b", "1.0.0 - - b")
	var begun atomic.Bool
	p.before = func() {
		if !begun.CompareAndSwap(false, true) {
			return // b's own rendering, and the later ones
		}
		if other := b.bulkGet("b"); other.StatusCode != 200 {
			t.Errorf("meanwhile: %s", status(other))
		}
	}
	want := strings.Join(lines, "\n") + "\n"
	if got := b.bulkGet("a"); got.body != want {
		t.Errorf("%d bytes, want %d", len(got.body), len(want))
	}
	kept, err := os.ReadDir(filepath.Join(b.cfg.CacheDir, "pages"))
	if err != nil || len(kept) != 1 {
		t.Errorf("%d pages kept, %v", len(kept), err)
	}
	b.door.rule(allowAll)
	if got := b.bulkGet("a"); got.body != want || p.parsed.Load() != 3 {
		t.Errorf("again: %d bytes, read %d times", len(got.body), p.parsed.Load())
	}
}

// TestPagesOnAFullDisk: small pages are served all the same.
func TestPagesOnAFullDisk(t *testing.T) {
	b, _ := newBulk(t, func(c *gateway.Config) { c.Limits.Cache.Reserve = 1 << 50 })
	b.bulkPage("a", "1.0.0 - - row")
	for range 2 {
		if got := b.bulkGet("a"); got.StatusCode != 200 || got.body != "1.0.0 - - row\n" {
			t.Error(status(got))
		}
		b.door.rule(allowAll)
	}
	b.registry.Script(bulkHost+"/large", packument(2<<20, 100))
	if got := b.bulkGet("large"); got.StatusCode != 424 || !strings.Contains(got.Status, "nearly full") {
		t.Error(status(got))
	}
}

// TestLargePageMemory: at no point is a page of 20 MB in memory. Where most is
// held, at the end of reading and of rendering, live memory is counted.
func TestLargePageMemory(t *testing.T) {
	const size, most = largeSize, 12 << 20
	b, p := newBulk(t, largePages)
	b.registry.Script(bulkHost+"/large", packument(size, largeReleases))
	b.bulkPage("small", "1.0.0 - - x")
	b.bulkGet("small")
	live := func() int64 {
		runtime.GC()
		runtime.GC() // what pools hold goes with the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	base := live()
	var grown []int64
	p.atEnd = func() { grown = append(grown, live()-base) }
	b.door.rule(func(r pkgref.Ref, _ door.File) policy.Decision {
		if strings.HasSuffix(r.Version, "7.0") {
			return policy.Decision{Effect: policy.Deny, Reason: "not this one"}
		}
		return policy.Decision{Effect: policy.Allow}
	})
	resp, err := b.client(sandboxA).Get("https://" + bulkHost + "/large")
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || n < size*8/10 {
		t.Fatalf("%s, %d bytes, %v", resp.Status, n, err)
	}
	if len(grown) != 2 || slices.Max(grown) > most {
		t.Errorf("live memory grew by %d bytes, want at most %d", grown, most)
	}
	p.atEnd = nil
	if kept := live() - base; kept > 6<<20 { // the index, the rendered page, the door's files
		t.Errorf("%d bytes stay in memory", kept)
	}
	before := live() // whatever else has gone since the beginning is not to hide it
	held := make([]byte, size)
	if seen := live() - before; seen < size*9/10 {
		t.Errorf("positive control: of %d bytes more %d were seen", len(held), seen)
	}
	runtime.KeepAlive(held)
}
