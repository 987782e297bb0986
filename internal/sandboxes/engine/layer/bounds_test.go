package layer

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// peak is a stream's end that notes how much memory is in use.
type peak struct{ writes, most uint64 }

func (p *peak) Write(data []byte) (int, error) {
	if p.writes++; p.writes%4096 == 0 {
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		p.most = max(p.most, now.HeapAlloc)
	}
	return len(data), nil
}

// TestAFullDirectory: the names of one are not held at once, whoever made them.
func TestAFullDirectory(t *testing.T) {
	const names = 30_000 // all of them at once are more than may be held
	dir := t.TempDir()
	at, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	for i := range names {
		if err := unix.Symlinkat("x", int(at.Fd()), fmt.Sprintf("%06d%s", i, strings.Repeat("n", 240))); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	p := &peak{}
	if err := Write(p, root, Owners{}); err != nil {
		t.Fatal(err)
	}
	if p.most == 0 || p.most > before.HeapAlloc+4<<20 {
		t.Errorf("%d names of 246 bytes took %d bytes of memory, looked at %d times", names, int64(p.most)-int64(before.HeapAlloc), p.writes/4096)
	}
}

// TestADeepDirectory: as deep as a path may be, each level costs what the first does.
func TestADeepDirectory(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	const depth = 1500
	name := strings.TrimSuffix(strings.Repeat("d/", depth), "/")
	if err := os.MkdirAll(filepath.Join(from, name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from, name, "f"), []byte("deep"), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := os.OpenRoot(from)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	var stream bytes.Buffer
	if err := Write(&stream, source, Owners{}); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := Read(&stream, root, Owners{}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, name, "f")); err != nil || string(text) != "deep" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestBudget: what has more files or longer paths than may be is not written, and not read.
func TestBudget(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	top, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	for _, tt := range []struct {
		left budget
		fine bool
	}{{budget{4, 4}, true}, {budget{3, 100}, false}, {budget{100, 3}, false}} {
		w := newWriter(io.Discard, Owners{})
		w.left = tt.left
		if err := w.writeEntry(top, ".", "."); (err == nil) != tt.fine {
			t.Errorf("%+v: %v", tt.left, err)
		}
	}
	r := &layerReader{left: budget{1, 100}}
	link := &tar.Header{Typeflag: tar.TypeBlock, Name: "x"}
	if err := r.readEntry(link, nil); err == nil || !strings.Contains(err.Error(), "of no kind") {
		t.Errorf("the control: %v", err)
	}
	if err := r.readEntry(link, nil); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a reader takes more entries than may be: %v", err)
	}
}

// TestPiecesEndWithTheSize: what a file has grown by since it was looked at is not its content.
func TestPiecesEndWithTheSize(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, at := range []int64{0, 1 << 20, 3 << 20} {
		if _, err := f.WriteAt(bytes.Repeat([]byte("x"), 8192), at); err != nil {
			t.Fatal(err)
		}
	}
	for size, want := range map[int64]string{
		0: "", 100: "0+100 ", 8192: "0+8192 ", 8193: "0+8192 ", 1 << 20: "0+8192 ", 1<<20 + 10: "0+8192 1048576+10 ",
		3<<20 + 8192: "0+8192 1048576+8192 3145728+8192 ",
	} {
		got := ""
		if err := eachPiece(f, size, func(p piece) error {
			got += fmt.Sprintf("%d+%d ", p.offset, p.length)
			return nil
		}); err != nil || got != want {
			t.Errorf("of %d bytes: %q, %v; want %q", size, got, err, want)
		}
	}
}
