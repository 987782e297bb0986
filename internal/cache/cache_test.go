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

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
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
	if err := w.Commit(digestOf(b)); err != nil {
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

// TestWrongBytesAreNotKept is G-IN-02 at the store.
func TestWrongBytesAreNotKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, cache.Limits{MaxArtifact: 10})
	for name, c := range map[string]struct {
		size  int64
		bytes string
		want  error
	}{
		"other digest": {5, "hellO", fault.ErrInvalid},
		"too short":    {5, "hell", fault.ErrInvalid},
		"too long":     {5, "hello!", fault.ErrInvalid},
		"empty":        {0, "", fault.ErrInvalid},
		"over the cap": {0, "hello hello", fault.ErrInvalid},
	} {
		w, err := s.Create(c.size, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Write([]byte(c.bytes))
		if err == nil {
			err = w.Commit(digestOf([]byte("hello")))
		}
		w.Abort()
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Get(digestOf([]byte("hello"))); !errors.Is(err, fault.ErrNotFound) {
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

// TestFirstDigest is the store's half of G-IN-01.
func TestFirstDigest(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, cache.Limits{})
	k := cache.Key{Ecosystem: "python", Upstream: "https://index.example/simple/", Project: "a", File: "a-1.tar.gz"}
	one, two := digestOf([]byte("1")), digestOf([]byte("2"))
	var wg sync.WaitGroup
	got := make([]string, 20)
	for i := range got {
		wg.Go(func() {
			d := one
			if i%2 == 1 {
				d = two
			}
			first, err := s.Bind(k, d)
			if err != nil {
				t.Error(err)
			}
			got[i] = first
		})
	}
	wg.Wait()
	for _, d := range got {
		if d != got[0] {
			t.Fatalf("two bindings of one file: %v", got)
		}
	}
	if again, err := open(t, dir, cache.Limits{}).FirstDigest(k); err != nil || again != got[0] {
		t.Errorf("after re-open: %s, %v", again, err)
	}
	other := k
	other.Upstream = "https://other.example/simple/"
	if d, err := s.FirstDigest(other); err != nil || d != "" {
		t.Errorf("another upstream's file is bound: %s, %v", d, err)
	}
	matches, err := filepath.Glob(filepath.Join(dir, "seen", "*", "*"))
	must(t, err)
	must(t, os.WriteFile(matches[0], []byte("{}"), 0o600))
	if d, err := s.FirstDigest(k); err == nil {
		t.Errorf("a damaged binding was read as %q", d)
	}
	if d, err := s.Bind(k, one); err == nil {
		t.Errorf("a damaged binding was replaced by %q", d)
	}
}
