package cache_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
)

func pageKey(project string) cache.PageKey {
	return cache.PageKey{Ecosystem: "python", Upstream: "https://index.example/simple/", Project: project}
}

// putPage keeps a page of these rows and this index.
func putPage(t *testing.T, s *cache.Store, project string, rows []byte, index string) *cache.Rows {
	t.Helper()
	w := s.CreatePage()
	defer w.Close()
	for chunk := range bytes.Lines(rows) {
		if _, err := w.Append(chunk); err != nil {
			t.Fatal(err)
		}
	}
	p := cache.Page{URL: "https://index.example/simple/" + project + "/", ContentType: "text/html", ETag: `"x"`, Digest: "sha256:1", Format: 7, Fetched: time.Unix(1, 0).UTC()}
	r, err := w.Commit(pageKey(project), p, func(to io.Writer) error {
		_, err := io.WriteString(to, index)
		return err
	})
	must(t, err)
	return r
}

func getPage(s *cache.Store, project string) (p cache.Page, index string, err error) {
	p, err = s.GetPage(pageKey(project), func(from io.Reader) error {
		b, err := io.ReadAll(from)
		index = string(b)
		return err
	})
	return p, index, err
}

func readRows(t *testing.T, r *cache.Rows) []byte {
	t.Helper()
	o, err := r.Open()
	must(t, err)
	defer o.Close()
	b, err := io.ReadAll(io.NewSectionReader(o, 0, r.Size()))
	must(t, err)
	return b
}

// lines are rows of about n bytes that do not pack well.
func lines(n int, seed uint64) []byte {
	var b bytes.Buffer
	random := rand.New(rand.NewPCG(seed, 0))
	for b.Len() < n {
		fmt.Fprintf(&b, "%x\n", random.Uint64())
	}
	return b.Bytes()
}

// TestPages: pages without rows, with few and with many, read by the process
// that wrote them and by another.
func TestPages(t *testing.T) {
	for name, rows := range map[string][]byte{"none": nil, "few": []byte("a\nb\n"), "many": lines(1<<20, 1)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, cache.Limits{})
			if got := readRows(t, putPage(t, s, "a", rows, "the index")); !bytes.Equal(got, rows) {
				t.Errorf("%d bytes of rows, want %d", len(got), len(rows))
			}
			if n := countFiles(t, filepath.Join(dir, "tmp")); n != 0 {
				t.Errorf("%d temporary files are left", n)
			}
			s = open(t, dir, cache.Limits{})
			p, index, err := getPage(s, "a")
			if err != nil || index != "the index" || p.ETag != `"x"` || p.Digest != "sha256:1" || p.Format != 7 || !p.Fetched.Equal(time.Unix(1, 0)) {
				t.Fatalf("GetPage = %+v, %q, %v", p, index, err)
			}
			if got := readRows(t, p.Rows); !bytes.Equal(got, rows) {
				t.Errorf("%d bytes of rows, want %d", len(got), len(rows))
			}
			must(t, s.ConfirmPage(pageKey("a"), time.Unix(2, 0)))
			p, _, err = getPage(s, "a")
			if err != nil || !p.Fetched.Equal(time.Unix(2, 0)) || !bytes.Equal(readRows(t, p.Rows), rows) {
				t.Errorf("after its confirmation: %+v, %v", p, err)
			}
			if _, _, err := getPage(s, "b"); !errors.Is(err, fault.ErrNotFound) {
				t.Errorf("another page: %v", err)
			}
			must(t, s.ConfirmPage(pageKey("b"), time.Unix(2, 0)))
		})
	}
}

// TestDamagedPages: a page that is not what was written is none, wherever the
// damage is, in a process that read it before and in one that did not.
func TestDamagedPages(t *testing.T) {
	rows := []byte(strings.Repeat("some rows\n", 50))
	dir := t.TempDir()
	s := open(t, dir, cache.Limits{})
	kept := putPage(t, s, "a", rows, "the index")
	matches, err := filepath.Glob(filepath.Join(dir, "pages", "*"))
	must(t, err)
	path := matches[0]
	data, err := os.ReadFile(path)
	must(t, err)
	whole := func(s *cache.Store) error {
		p, _, err := getPage(s, "a")
		if err != nil {
			return err
		}
		o, err := p.Rows.Open()
		if err == nil {
			must(t, o.Close())
		}
		return err
	}
	refused := func(name string, bad []byte) {
		t.Helper()
		must(t, os.WriteFile(path, bad, 0o600))
		for _, s := range []*cache.Store{s, open(t, dir, cache.Limits{})} {
			if err := whole(s); !errors.Is(err, fault.ErrNotFound) && !errors.Is(err, cache.ErrRowsGone) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1
		refused(fmt.Sprintf("byte %d of %d flipped", i, len(data)), bad)
	}
	for name, bad := range map[string][]byte{
		"cut": data[:len(data)-3], "longer": append([]byte("x"), data...), "empty": {}, "text": []byte("x\ny"), "layout before": append([]byte("{}\n"), data[:30]...),
		"footer of zeros": make([]byte, 100),
	} {
		refused(name, bad)
	}
	must(t, os.WriteFile(path, data, 0o600)) // positive control
	must(t, whole(s))
	if got := readRows(t, kept); !bytes.Equal(got, rows) {
		t.Errorf("rows %q", got)
	}
	putPage(t, s, "a", []byte("other rows\n"), "the index")
	if _, err := kept.Open(); !errors.Is(err, cache.ErrRowsGone) {
		t.Errorf("rows that were replaced: %v", err)
	}
}

// TestPageEviction: pages are bounded by their bytes, the least recently used
// go first, and what is being read can be read on.
func TestPageEviction(t *testing.T) {
	const size = 100 << 10
	s := open(t, t.TempDir(), cache.Limits{MaxPageBytes: 4*size + 64<<10})
	for i := range 4 {
		putPage(t, s, fmt.Sprint(i), lines(size, uint64(i)), "index")
	}
	p, _, err := getPage(s, "1")
	must(t, err)
	reading, err := p.Rows.Open()
	must(t, err)
	for _, used := range []string{"0", "2", "3"} {
		_, _, err = getPage(s, used)
		must(t, err)
	}
	putPage(t, s, "4", lines(size, 4), "index")
	if _, _, err := getPage(s, "1"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("the least recently used page is still there: %v", err)
	}
	if _, err := p.Rows.Open(); !errors.Is(err, cache.ErrRowsGone) {
		t.Errorf("evicted rows: %v", err)
	}
	got, err := io.ReadAll(io.NewSectionReader(reading, 0, p.Rows.Size()))
	if err != nil || !bytes.Equal(got, lines(size, 1)) {
		t.Errorf("while they are read, %d bytes, %v", len(got), err)
	}
	must(t, reading.Close())
	if _, _, err := getPage(s, "4"); err != nil {
		t.Errorf("the newest page: %v", err)
	}
	putPage(t, s, "huge", lines(8*size, 5), "index") // larger than all pages may be: it stays until the next
	if p, _, err := getPage(s, "huge"); err != nil || int64(len(readRows(t, p.Rows))) != p.Rows.Size() {
		t.Errorf("a huge page: %v", err)
	}
}

// TestPagesOnAFullDisk: small pages go on in memory.
func TestPagesOnAFullDisk(t *testing.T) {
	s, err := cache.Open(t.TempDir(), cache.Limits{Reserve: 1 << 50})
	must(t, err)
	w := s.CreatePage()
	defer w.Close()
	_, err = w.Append([]byte("rows"))
	must(t, err)
	if _, err := w.Commit(pageKey("a"), cache.Page{}, func(io.Writer) error { return nil }); !errors.Is(err, fault.ErrUnavailable) {
		t.Fatalf("Commit = %v", err)
	}
	r, err := w.Memory()
	must(t, err)
	if got := readRows(t, r); string(got) != "rows" || r.Memory() != 4 {
		t.Errorf("rows %q", got)
	}
	large := s.CreatePage()
	defer large.Close()
	if _, err := large.Append(lines(1<<20, 1)); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a large page: %v", err)
	}
	if _, err := large.Memory(); err == nil {
		t.Error("a large page's rows are in memory")
	}
}

// TestSpool: what is read is what was written since the last Reset, in memory
// and beyond.
func TestSpool(t *testing.T) {
	s := open(t, t.TempDir(), cache.Limits{})
	p := s.Spool()
	defer p.Close()
	for _, n := range []int{0, 10, 300 << 10, 3, 1 << 20} {
		must(t, p.Reset())
		var want []byte
		for _, part := range [][]byte{lines(n, 1), lines(n/2, 2)} {
			if _, err := p.Write(part); err != nil {
				t.Fatal(err)
			}
			want = append(want, part...)
			r, err := p.Reader()
			must(t, err)
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, want) || p.Size() != int64(len(want)) || p.Digest() != digestOf(want) {
				t.Errorf("%d of %d bytes read, %v", len(got), len(want), err)
			}
		}
	}
}
