package image_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
)

// sealed is an image that a checker has sealed and verified, and that is old
// enough to be remembered as it is.
func sealed(t *testing.T) (*image.Checker, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "image")
	if err := image.Make(dir); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "pages"), "0123456789")
	put(t, filepath.Join(dir, "state"), "abc")
	c := &image.Checker{}
	if err := c.Seal(dir, "sb1"); err != nil {
		t.Fatal(err)
	}
	past := time.NewTimer(100 * time.Millisecond) // the file system's clock has to move on
	<-past.C
	for range 2 {
		if sandbox, err := c.Verify(dir); err != nil || sandbox != "sb1" {
			t.Fatalf("%q, %v", sandbox, err)
		}
	}
	return c, dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCheckerFindsEveryChange: also one that leaves the size and the time of
// the last write as they were.
func TestCheckerFindsEveryChange(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"a byte, and the time put back": func(dir string) error {
			path := filepath.Join(dir, "pages")
			before, err := os.Stat(path)
			if err != nil {
				return err
			}
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("x"), 5)
			return errors.Join(err, f.Close(), os.Chtimes(path, before.ModTime(), before.ModTime()))
		},
		"another file in its place": func(dir string) error {
			if err := os.WriteFile(filepath.Join(dir, "..", "new"), []byte("012345678x"), 0o600); err != nil {
				return err
			}
			return os.Rename(filepath.Join(dir, "..", "new"), filepath.Join(dir, "pages"))
		},
		"two swapped": func(dir string) error {
			return errors.Join(
				os.Rename(filepath.Join(dir, "pages"), filepath.Join(dir, "x")),
				os.Rename(filepath.Join(dir, "state"), filepath.Join(dir, "pages")),
				os.Rename(filepath.Join(dir, "x"), filepath.Join(dir, "state")),
			)
		},
		"a file more":      func(dir string) error { return os.WriteFile(filepath.Join(dir, "more"), nil, 0o600) },
		"a file less":      func(dir string) error { return os.Remove(filepath.Join(dir, "state")) },
		"a link":           func(dir string) error { return os.Symlink("pages", filepath.Join(dir, "link")) },
		"a directory":      func(dir string) error { return os.Mkdir(filepath.Join(dir, "dir"), 0o700) },
		"the seal":         func(dir string) error { return os.Truncate(filepath.Join(dir, "seal.json"), 3) },
		"the whole of it":  os.RemoveAll,
		"one cut short":    func(dir string) error { return os.Truncate(filepath.Join(dir, "pages"), 9) },
		"one made longer":  func(dir string) error { return os.Truncate(filepath.Join(dir, "pages"), 11) },
		"no seal any more": func(dir string) error { return os.Remove(filepath.Join(dir, "seal.json")) },
	} {
		t.Run(name, func(t *testing.T) {
			c, dir := sealed(t)
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Verify(dir); !errors.Is(err, fault.ErrConflict) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestCheckerOfFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	put(t, path, "abc")
	var c image.Checker
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	for range 2 {
		if got, err := c.File(path); err != nil || got != abc {
			t.Errorf("%s, %v", got, err)
		}
	}
	put(t, path, "abd")
	if got, err := c.File(path); err != nil || got == abc {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := c.File(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
