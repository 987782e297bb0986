package templatebuild

import (
	"archive/tar"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// uploaded is an upload with a file, in a directory or alone.
func uploaded(t *testing.T) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "upload"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := tar.NewWriter(file)
	for _, name := range []string{"dir/file", "alone"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 3}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("new")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

// TestNoCopyWritesThroughALink: whoever left it where a file is to be would choose the file that root writes to. The control is
// a link to a directory, into which is copied.
func TestNoCopyWritesThroughALink(t *testing.T) {
	t.Parallel()
	upload := uploaded(t)
	for name, c := range map[string]struct{ source, dest, link string }{
		"a file's own place":      {"alone", "home/file", "home/file"},
		"a file into a directory": {"alone", "home", "home/alone"},
		"a directory":             {"dir", "home", "home/file"},
		"a directory's name":      {"alone", "inside", "home/alone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			at := func(name string) string { return filepath.Join(top, name) }
			theirs := at("passwd")
			for _, err := range []error{os.WriteFile(theirs, []byte("kept"), 0o600), os.Mkdir(at("home"), 0o700), os.Symlink(theirs, at(c.link)), os.Symlink("home", at("inside"))} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if out, err := exec.CommandContext(t.Context(), "/bin/bash", "-c", copyScript, "copy", upload, c.source, "false", at(c.dest), "").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for place, want := range map[string]string{theirs: "kept", at(c.link): "new"} {
				if got, err := os.ReadFile(place); err != nil || string(got) != want {
					t.Errorf("%s has %q, not %q: %v", place, got, want, err)
				}
			}
		})
	}
}

// TestACopyFollowsALinkOnTheWayAlone: a directory of the destination that is a link leads where it leads for every program
// of the sandbox, in whose root the script runs. One below the destination, where a directory of the upload is to be, is
// replaced: nobody named it.
func TestACopyFollowsALinkOnTheWayAlone(t *testing.T) {
	t.Parallel()
	upload := uploaded(t)
	for name, c := range map[string]struct {
		source, dest, link string
		at, not            string // where the file is then, and where it is not
	}{
		"on the way":             {"dir", "way/home", "way", "theirs/home/file", ""},
		"the destination itself": {"dir", "theirs/link", "theirs/link", "theirs/home/file", ""},
		"below the destination":  {".", "top", "top/dir", "top/dir/file", "theirs/home/file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			at := func(name string) string { return filepath.Join(top, name) }
			leads := map[string]string{"way": at("theirs"), "theirs/link": "home", "top/dir": "../theirs/home"}
			for _, err := range []error{os.MkdirAll(at("theirs/home"), 0o700), os.Mkdir(at("top"), 0o700), os.Symlink(leads[c.link], at(c.link))} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if out, err := exec.CommandContext(t.Context(), "/bin/bash", "-c", copyScript, "copy", upload, c.source, "false", at(c.dest), "").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if got, err := os.ReadFile(at(c.at)); err != nil || string(got) != "new" {
				t.Errorf("%s has %q: %v", c.at, got, err)
			}
			if _, err := os.Lstat(at(c.not)); c.not != "" && err == nil {
				t.Errorf("%s is there", c.not)
			}
		})
	}
}
