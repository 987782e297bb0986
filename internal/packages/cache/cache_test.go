package cache_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
)

func open(t *testing.T, dir string, limits cache.Limits) *cache.Store {
	t.Helper()
	limits.Reserve = 1
	s, err := cache.Open(dir, limits)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func put(t *testing.T, s *cache.Store, b []byte) string {
	t.Helper()
	w, err := s.Create(int64(len(b)), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	return digestOf(b)
}

func read(t *testing.T, s *cache.Store, digest string) []byte {
	t.Helper()
	b, err := s.Get(digest)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(b.Reader())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return got
}

func blobPath(dir, digest string) string {
	h := strings.TrimPrefix(digest, "sha256:")
	return filepath.Join(dir, "blobs", h[:2], h)
}

func countFiles(t *testing.T, dir string) int {
	t.Helper()
	e, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(e)
}

func TestBlobRoundTripAndReopen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, cache.Limits{})
	d := put(t, s, []byte("hello"))
	if got := read(t, s, d); string(got) != "hello" {
		t.Errorf("got %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "tmp", "artifact-left"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, cache.Limits{})
	if n := countFiles(t, filepath.Join(dir, "tmp")); n != 0 {
		t.Errorf("%d half-written files survived the re-open", n)
	}
	if got := read(t, s, d); string(got) != "hello" {
		t.Errorf("after re-open got %q", got)
	}
	if _, err := s.Get(digestOf([]byte("other"))); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("a missing blob: %v", err)
	}
	if _, err := s.Get("sha256:../../etc/passwd"); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a digest that is none: %v", err)
	}
}

// TestWhatIsNotKept: too many bytes, none, or what its owner gave up.
func TestWhatIsNotKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, cache.Limits{MaxArtifact: 10})
	for name, c := range map[string]struct {
		size, most int64
		bytes      string
		want       error
	}{
		"too long":       {5, 0, "hello!", fault.ErrInvalid},
		"empty":          {0, 0, "", fault.ErrInvalid},
		"over the cap":   {0, 0, "hello hello", fault.ErrInvalid},
		"over its limit": {0, 4, "hello", fault.ErrInvalid},
		"given up":       {5, 0, "hello", nil},
	} {
		w, err := s.Create(c.size, c.most)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Write([]byte(c.bytes))
		if err == nil && c.want != nil {
			err = w.Commit()
		}
		w.Abort()
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Get(digestOf([]byte(c.bytes))); !errors.Is(err, fault.ErrNotFound) {
			t.Errorf("%s: something was kept: %v", name, err)
		}
	}
	if _, err := s.Create(11, 0); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("an announced size over the cap: %v", err)
	}
	if n := countFiles(t, filepath.Join(dir, "tmp")); n != 0 {
		t.Errorf("%d temporary files are left", n)
	}
}

// TestSums: all sums are those of the last attempt's bytes, which can be read
// back before anybody else sees them.
func TestSums(t *testing.T) {
	s := open(t, t.TempDir(), cache.Limits{})
	w, err := s.Create(0, 0)
	must(t, err)
	w.AlsoSHA1()
	_, err = w.Write([]byte("first attempt"))
	must(t, err)
	must(t, w.Reset())
	_, err = w.Write([]byte("hello"))
	must(t, err)
	back := make([]byte, w.Size())
	if _, err := w.ReadAt(back, 0); err != nil || string(back) != "hello" {
		t.Errorf("read back %q, %v", back, err)
	}
	want, err := cache.SumAll(strings.NewReader("hello"))
	must(t, err)
	if got := w.Sums(); got != want || got.SHA256 != digestOf([]byte("hello")) {
		t.Errorf("sums %+v, want %+v", got, want)
	}
	for digest, sum := range map[string]string{
		"sha1:x": "sha1:aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d", "sha256:x": want.SHA256, "sha512:x": want.SHA512, "md5:x": "", "h1:x": "", "": "",
	} {
		if got := want.Of(digest); got != sum || len(want.SHA512) != len("sha512:")+128 {
			t.Errorf("the sum to compare with %q is %q", digest, got)
		}
	}
	must(t, w.Commit())
	if got := read(t, s, want.SHA256); string(got) != "hello" {
		t.Errorf("got %q", got)
	}
}

// TestPoisoned is G-IN-04, in a process that verified the blob and in one that
// did not.
func TestPoisoned(t *testing.T) {
	poison := map[string]func(t *testing.T, dir, d string){
		"flipped byte": func(t *testing.T, dir, d string) {
			t.Helper()
			p := blobPath(dir, d)
			info, err := os.Stat(p)
			if err != nil {
				t.Fatal(err)
			}
			must(t, os.WriteFile(p, []byte("hellO"), 0o600))
			must(t, os.Chtimes(p, info.ModTime(), info.ModTime())) // put back what can be put back
		},
		"zero length": func(t *testing.T, dir, d string) { t.Helper(); must(t, os.Truncate(blobPath(dir, d), 0)) },
		"symlink": func(t *testing.T, dir, d string) {
			t.Helper()
			must(t, os.Remove(blobPath(dir, d)))
			target := filepath.Join(dir, "target")
			must(t, os.WriteFile(target, []byte("hello"), 0o600))
			must(t, os.Symlink(target, blobPath(dir, d)))
		},
		"swapped": func(t *testing.T, dir, d string) {
			t.Helper()
			other := digestOf([]byte("other"))
			must(t, os.Rename(blobPath(dir, other), blobPath(dir, d)))
		},
		"hard link": func(t *testing.T, dir, d string) {
			t.Helper()
			must(t, os.Link(blobPath(dir, d), filepath.Join(dir, "second")))
		},
		"writable by others": func(t *testing.T, dir, d string) { t.Helper(); must(t, os.Chmod(blobPath(dir, d), 0o666)) },
		"directory": func(t *testing.T, dir, d string) {
			t.Helper()
			must(t, os.Remove(blobPath(dir, d)))
			must(t, os.Mkdir(blobPath(dir, d), 0o700))
		},
		"wrong owner": func(t *testing.T, dir, d string) {
			t.Helper()
			if os.Geteuid() == 0 { // only root can give a file away; others can't be given one
				must(t, os.Chown(blobPath(dir, d), 65534, 65534))
			} else {
				must(t, os.Truncate(blobPath(dir, d), 0))
			}
		},
	}
	for name, f := range poison {
		for _, reopened := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s reopened=%v", name, reopened), func(t *testing.T) {
				dir := t.TempDir()
				s := open(t, dir, cache.Limits{})
				d := put(t, s, []byte("hello"))
				put(t, s, []byte("other"))
				if got := read(t, s, d); string(got) != "hello" { // positive control
					t.Fatalf("got %q", got)
				}
				f(t, dir, d)
				if reopened {
					s = open(t, dir, cache.Limits{})
				}
				if b, err := s.Get(d); !errors.Is(err, cache.ErrQuarantined) {
					t.Fatalf("Get = %v, %v; want ErrQuarantined", b, err)
				}
				if n := countFiles(t, filepath.Join(dir, "quarantine")); n != 1 {
					t.Errorf("%d things in quarantine, want 1", n)
				}
				put(t, s, []byte("hello"))
				if got := read(t, s, d); string(got) != "hello" {
					t.Errorf("after a refetch got %q", got)
				}
			})
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEvictionSparesWhatIsOpen(t *testing.T) {
	s := open(t, t.TempDir(), cache.Limits{MaxBytes: 10})
	first := put(t, s, []byte("11111"))
	b, err := s.Get(first)
	must(t, err)
	second := put(t, s, []byte("22222"))
	third := put(t, s, []byte("33333"))
	if _, err := s.Get(second); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("the idle blob is still there: %v", err)
	}
	if got := read(t, s, third); string(got) != "33333" {
		t.Errorf("the newest blob: %q", got)
	}
	got, err := io.ReadAll(b.Reader())
	if err != nil || string(got) != "11111" {
		t.Errorf("the open blob: %q, %v", got, err)
	}
	must(t, b.Close())
	put(t, s, []byte("44444"))
	if _, err := s.Get(first); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("the closed blob was spared: %v", err)
	}
}

// TestBinding is the store's half of G-IN-01.
func TestBinding(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, cache.Limits{})
	k := cache.Key{Ecosystem: "python", Upstream: "https://index.example/simple/", Project: "a", File: "a-1.tar.gz"}
	bind := func(content string) cache.Binding {
		sums, err := cache.SumAll(strings.NewReader(content))
		must(t, err)
		return cache.Binding{Given: sums.SHA512, Sums: sums, First: time.Unix(7, 0).UTC()}
	}
	one, two := bind("1"), bind("2")
	var wg sync.WaitGroup
	got := make([]cache.Binding, 20)
	for i := range got {
		wg.Go(func() {
			b := one
			if i%2 == 1 {
				b = two
			}
			first, err := s.Bind(k, b)
			if err != nil {
				t.Error(err)
			}
			got[i] = first
		})
	}
	wg.Wait()
	for _, b := range got {
		if b != got[0] {
			t.Fatalf("two bindings of one file: %v", got)
		}
	}
	if again, ok, err := open(t, dir, cache.Limits{}).Binding(k); err != nil || !ok || again != got[0] {
		t.Errorf("after re-open: %v, %v, %v", again, ok, err)
	}
	other := k
	other.Upstream = "https://other.example/simple/"
	if b, ok, err := s.Binding(other); err != nil || ok {
		t.Errorf("another upstream's file is bound: %v, %v", b, err)
	}
	if b, err := s.Bind(other, cache.Binding{Given: "sha256:" + strings.Repeat("0", 64)}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a binding without a sha256: %v, %v", b, err)
	}
	path := onlyMatch(t, filepath.Join(dir, "seen", "*", "*"))
	must(t, os.WriteFile(path, []byte("{}"), 0o600))
	if b, ok, err := s.Binding(k); err == nil {
		t.Errorf("a damaged binding was read as %v, %v", b, ok)
	}
	if b, err := s.Bind(k, one); err == nil {
		t.Errorf("a damaged binding was replaced by %v", b)
	}
}

// TestOldBinding: what was bound before there were more digests than one stays
// bound, since when its file is from.
func TestOldBinding(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, cache.Limits{})
	k := cache.Key{Ecosystem: "python", Upstream: "https://index.example/simple/", Project: "a", File: "a-1.tar.gz"}
	d := digestOf([]byte("1"))
	if _, err := s.Bind(k, cache.Binding{Sums: cache.Sums{SHA256: d}}); err != nil {
		t.Fatal(err)
	}
	path, then := onlyMatch(t, filepath.Join(dir, "seen", "*", "*")), time.Unix(1_700_000_000, 0)
	must(t, os.WriteFile(path, fmt.Appendf(nil, `{"key":{"ecosystem":%q,"upstream":%q,"project":%q,"file":%q},"digest":%q}`, k.Ecosystem, k.Upstream, k.Project, k.File, d), 0o600))
	must(t, os.Chtimes(path, then, then))
	b, ok, err := s.Binding(k)
	if err != nil || !ok || b.SHA256 != d || b.Given != d || !b.First.Equal(then) {
		t.Errorf("%+v, %v, %v", b, ok, err)
	}
}

func onlyMatch(t *testing.T, pattern string) string {
	t.Helper()
	matches, err := filepath.Glob(pattern)
	if err != nil || len(matches) != 1 {
		t.Fatalf("%s matches %v (%v)", pattern, matches, err)
	}
	return matches[0]
}

func TestShelf(t *testing.T) {
	dir := t.TempDir()
	sh, err := open(t, dir, cache.Limits{}).Shelf("log/x", 4)
	must(t, err)
	if _, err := sh.Get("a"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("a value that there is not: %v", err)
	}
	must(t, sh.Put("a", []byte("1\n2")))
	must(t, sh.Replace("a", []byte("1\n2"), []byte("3")))
	if err := sh.Replace("a", []byte("1\n2"), []byte("4")); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("an old value was replaced: %v", err)
	}
	if err := sh.Replace("a", nil, []byte("4")); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("a value that there is was taken for absent: %v", err)
	}
	again, err := open(t, dir, cache.Limits{}).Shelf("log/x", 4)
	must(t, err)
	if v, err := again.Get("a"); err != nil || string(v) != "3" {
		t.Errorf("after re-open: %q, %v", v, err)
	}
	path := onlyMatch(t, filepath.Join(dir, "shelves", "log", "x", "*"))
	must(t, os.WriteFile(path, []byte("{}\n3"), 0o600))
	if v, err := sh.Get("a"); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a damaged value: %q, %v", v, err)
	}
	if err := sh.Replace("a", nil, []byte("4")); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a damaged value was replaced: %v", err)
	}
	for i := range 20 {
		must(t, sh.Put(fmt.Sprint(i), []byte("x")))
	}
	if n := countFiles(t, filepath.Dir(path)); n > 5 {
		t.Errorf("%d values on a shelf for 4", n)
	}
	if v, err := sh.Get("19"); err != nil || string(v) != "x" {
		t.Errorf("the newest value: %q, %v", v, err)
	}
	for _, name := range []string{"", ".", "../x", "/x"} {
		if _, err := open(t, dir, cache.Limits{}).Shelf(name, 1); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("a shelf named %q: %v", name, err)
		}
	}
}

// TestShelfTakesOneOfMany: of those who replace one value with their own, one wins.
func TestShelfTakesOneOfMany(t *testing.T) {
	dir := t.TempDir()
	shelves := make([]*cache.Shelf, 20)
	for i := range shelves {
		sh, err := open(t, dir, cache.Limits{}).Shelf("s", 0)
		must(t, err)
		shelves[i] = sh
	}
	var wg sync.WaitGroup
	won := make(chan string, len(shelves))
	for i, sh := range shelves {
		wg.Go(func() {
			mine := fmt.Sprint(i)
			switch err := sh.Replace("k", nil, []byte(mine)); {
			case err == nil:
				won <- mine
			case !errors.Is(err, fault.ErrConflict):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(won)
	v, err := shelves[0].Get("k")
	if first := <-won; err != nil || string(v) != first || len(won) != 0 {
		t.Errorf("%s and %d others won, and %q is there (%v)", first, len(won), v, err)
	}
}
