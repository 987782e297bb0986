package layer

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNothingOutsideIsWritten: what a sandbox that was not held puts in the place of what was
// seen a moment ago is not followed, and nobody waits for the other end of a pipe.
func TestNothingOutsideIsWritten(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o600), os.Mkdir(filepath.Join(outside, "d"), 0o700),
		os.Mkdir(at("dir"), 0o700), os.WriteFile(at("dir/f"), []byte("public"), 0o600), os.Mkdir(at("dir/d"), 0o700),
		os.WriteFile(at("was"), []byte("public"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var out bytes.Buffer
	w := newWriter(&out, Owners{})
	top, err := root.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	if err := w.writeEntry(top, "dir", "dir"); err != nil || !strings.Contains(out.String(), "public") {
		t.Fatalf("INCONCLUSIVE: nothing is written: %v", err)
	}
	var before unix.Stat_t
	if err := unix.Lstat(at("dir"), &before); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(at("dir"), at("away")), os.Symlink(outside, at("dir"))); err != nil {
		t.Fatal(err)
	}
	if err := w.directory(top, "dir", &tar.Header{Name: "dir", PAXRecords: map[string]string{}}, &before); err == nil {
		t.Error("what a link leads to was written as the directory that was there")
	}
	if err := w.writeEntry(top, "dir", "dir"); err != nil { // the link itself
		t.Error(err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(at("was"), &st); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(at("was"), at("kept")); err != nil { // kept, or its inode is the next one's
		t.Fatal(err)
	}
	for kind, put := range map[string]func(string) error{
		"a pipe":       func(at string) error { return unix.Mkfifo(at, 0o600) },
		"a link":       func(at string) error { return os.Symlink(filepath.Join(outside, "f"), at) },
		"a directory":  func(at string) error { return os.Mkdir(at, 0o700) },
		"another file": func(at string) error { return os.WriteFile(at, []byte("secret"), 0o600) },
	} {
		if err := put(at("was")); err != nil {
			t.Fatal(err)
		}
		if err := w.writeFile(top, "was", &tar.Header{Name: "was", PAXRecords: map[string]string{}}, &st); err == nil {
			t.Errorf("%s was written as the file that was there", kind)
		}
		if err := os.Remove(at("was")); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(out.String(), "secret") {
		t.Error("what is outside is in the layer")
	}
}
