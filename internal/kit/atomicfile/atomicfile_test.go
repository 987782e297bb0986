package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// alone fails if something is in a directory but what is named.
func alone(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	if strings.Join(found, " ") != strings.Join(names, " ") {
		t.Errorf("%q is there; want %q", found, names)
	}
}

// A reader that has the old file open reads the old content to its end; who opens it anew reads
// the new one. Nothing is left beside.
func TestReplace(t *testing.T) {
	for name, replace := range map[string]func(string, []byte, fs.FileMode) error{
		"durable": atomicfile.Replace, "volatile": atomicfile.ReplaceVolatile,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "a")
			if err := replace(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			before, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer before.Close()
			if err := replace(path, []byte("newer"), 0o644); err != nil {
				t.Fatal(err)
			}
			was := make([]byte, 8)
			if n, _ := before.Read(was); string(was[:n]) != "old" {
				t.Errorf("the old file was written to: %q", was[:n])
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 || read(t, path) != "newer" {
				t.Errorf("%v %v", info, err)
			}
			alone(t, dir, "a")
		})
	}
}

// A link is replaced, not followed: what it leads to may be anybody's.
func TestLinksAreReplaced(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "a"), filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.WriteFile(other, []byte("other"), 0o600), os.Symlink(other, path)); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Replace(path, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if read(t, other) != "other" || read(t, path) != "a" {
		t.Error("a link was followed")
	}
}

// A file that can't take the name leaves all as it was.
func TestFailureLeavesAllAsItWas(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := os.MkdirAll(filepath.Join(path, "not-empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Replace(path, []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	alone(t, dir, "a")
	if err := atomicfile.Replace(filepath.Join(dir, "none", "a"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, strings.Repeat("a", 200))
	if err := atomicfile.Create(path, []byte("first"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Create(path, []byte("second"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 || read(t, path) != "first" {
		t.Errorf("%v %v", info, err)
	}
	alone(t, dir, filepath.Base(path))
}

func TestReplaceLike(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := atomicfile.ReplaceLike(path, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is nothing to be like: %v", err)
	}
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o750)); err != nil {
		t.Fatal(err)
	}
	owner := os.Geteuid()
	if owner == 0 {
		owner = 4711
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	if err := atomicfile.ReplaceLike(path, []byte("x")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o750 || ownerOf(info) != owner || read(t, path) != "x" {
		t.Errorf("%v %v", info, err)
	}
}
