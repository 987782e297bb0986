package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
)

// TestWalkHasBounds: of entries, of their names, and of depth.
func TestWalkHasBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 50 {
		if err := os.MkdirAll(filepath.Join(dir, "d", fmt.Sprintf("name-%02d", i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	walk := func(entries, names int) (int, error) {
		visited := 0
		err := lookThrough(t.Context(), root, treewalk.Bounds{Entries: entries, Names: names, Depth: mostDepth}, func(string, fs.FileInfo) error { visited++; return nil })
		return visited, err
	}
	if n, err := walk(51, 1+50*9); n != 51 || err != nil { // the control
		t.Error(n, err)
	}
	if n, err := walk(50, 1<<20); n != 50 || err == nil {
		t.Error("too many entries:", n, err)
	}
	if n, err := walk(100, 50*9); n != 50 || err == nil {
		t.Error("names that are too long:", n, err)
	}
	deep := root
	for range mostDepth {
		if err := deep.Mkdir("x", 0o755); err != nil {
			t.Fatal(err)
		}
		if deep, err = deep.OpenRoot("x"); err != nil {
			t.Fatal(err)
		}
		defer deep.Close()
	}
	if _, err := walk(1000, 1<<20); err != nil {
		t.Error("as deep as may be:", err)
	}
	if err := deep.Mkdir("x", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := walk(1000, 1<<20); err == nil {
		t.Error("deeper than may be")
	}
}
