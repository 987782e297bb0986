package inventory

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// later is a memory to which all that is on the disk has been there for long.
func later() *Memory {
	m := NewMemory([]Layout{toy{}})
	m.now = func() time.Time { return time.Now().Add(time.Hour) }
	return m
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// parses counts how often a file was really read.
func parses(t *testing.T, m *Memory, path string) func() (string, int) {
	t.Helper()
	n := 0
	return func() (string, int) {
		text, err := recall(m, path, "manifest", func(head []byte) string { n++; return string(head) })
		if err != nil {
			t.Fatal(err)
		}
		return text, n
	}
}

// TestMemoryOfFiles: what is unchanged is read once; what was changed is seen,
// though its size is the same and its times were set back.
func TestMemoryOfFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "package.json")
	write(t, path, `{"version":"1"}`)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	read := parses(t, later(), path)
	for range 3 {
		if text, n := read(); text != `{"version":"1"}` || n != 1 {
			t.Fatal(text, n)
		}
	}
	write(t, path, `{"version":"2"}`)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if text, n := read(); text != `{"version":"2"}` || n != 2 {
		t.Error(text, n)
	}
	other := filepath.Join(filepath.Dir(path), "other")
	write(t, other, `{"version":"3"}`)
	if err := os.Chtimes(other, old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if text, n := read(); text != `{"version":"3"}` || n != 3 {
		t.Error(text, n)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := recall(later(), path, "manifest", func([]byte) string { return "" }); err == nil {
		t.Error("a file that is gone was read")
	}
}

// TestWhatIsYoungIsNotRemembered: a change within a tick of the clock could not
// be seen.
func TestWhatIsYoungIsNotRemembered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "package.json")
	write(t, path, "{}")
	m := NewMemory([]Layout{toy{}})
	read := parses(t, m, path)
	for i := range 3 {
		if _, n := read(); n != i+1 {
			t.Fatal(n)
		}
	}
	if _, _, err := m.readDir(dir); err != nil || len(m.dirs) != 0 {
		t.Error(m.dirs, err)
	}
}

func TestMemoryOfDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a", "x"), "")
	write(t, filepath.Join(dir, "setup.py"), "")
	write(t, filepath.Join(dir, "README"), "")
	m := later()
	see := func(wantDirs, wantOthers []string) {
		t.Helper()
		for range 2 {
			dirs, others, err := m.readDir(dir)
			if err != nil || !slices.Equal(dirs, wantDirs) || !slices.Equal(others, wantOthers) {
				t.Errorf("%v %v %v, want %v %v", dirs, others, err, wantDirs, wantOthers)
			}
		}
	}
	see([]string{"a"}, []string{"setup.py"})
	if len(m.dirs) != 1 {
		t.Error("the directory was not remembered")
	}
	write(t, filepath.Join(dir, "b.egg-info"), "")
	see([]string{"a"}, []string{"b.egg-info", "setup.py"})
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	see(nil, []string{"b.egg-info", "setup.py"})
	if err := os.Symlink("/", filepath.Join(dir, "root.zip")); err != nil {
		t.Fatal(err)
	}
	see(nil, []string{"b.egg-info", "setup.py"})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.readDir(dir); err == nil {
		t.Error("a directory that is gone was listed")
	}
}

// TestClosedPlaces: closed is where only root can have changed anything, and
// where everything was looked at.
func TestClosedPlaces(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("files must belong to root")
	}
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "closed/node_modules/a/package.json"), `{"name":"a","version":"1"}`)
	write(t, filepath.Join(root, "file/node_modules/a/package.json"), `{"name":"a","version":"1"}`)
	write(t, filepath.Join(root, "dir/deep/down/setup.py"), `setup(name="x")`)
	write(t, filepath.Join(root, "group/deep/x"), "")
	write(t, filepath.Join(root, "home/agent/x"), "")
	for _, err := range []error{
		os.Chown(filepath.Join(root, "file/node_modules/a/package.json"), 1000, 1000),
		os.Chown(filepath.Join(root, "dir/deep/down"), 1000, 1000),
		os.Chmod(filepath.Join(root, "group/deep"), 0o775),
		os.Chown(filepath.Join(root, "home/agent"), 1000, 1000),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	m := later()
	for range 2 { // the second time all of it is remembered
		found := Take(t.Context(), Request{Root: root, Layouts: m.layouts, Memory: m, Places: []string{"/home/agent", "/closed", "/file", "/dir", "/group", "/home", "/not-there"}})
		if !slices.Equal(found.Closed, []string{"/closed"}) {
			t.Errorf("closed are %v", found.Closed)
		}
		if len(found.Packages) != 3 {
			t.Errorf("found %v", found.Packages)
		}
	}
}

// toy is a layout: what lies in a directory called node_modules is a package, and where a
// setup.py is somebody writes one.
type toy struct{}

func (toy) Usual() []string { return nil }

func (toy) Tells(entry fs.DirEntry) bool {
	return entry.Name() == "setup.py" || strings.HasSuffix(entry.Name(), ".egg-info") || strings.HasSuffix(entry.Name(), ".zip") && entry.Type().IsRegular()
}

func (toy) Holds(string) bool { return false }
func (toy) Skips(string) bool { return false }

func (toy) Sources(w *Walk, dir string, files []string) {
	if slices.Contains(files, "setup.py") {
		w.AddSource(channel.InstalledPackage{Name: "project", Path: dir})
	}
}

func (toy) File(*Walk, string, string) {}

func (toy) Directory(w *Walk, d Directory) bool {
	if d.Base != "node_modules" {
		return false
	}
	dirs, _ := w.Visit(d.Path)
	for _, dir := range dirs {
		if name, err := Recall(w, filepath.Join(d.Path, dir, "package.json"), "name", func([]byte) string { return dir }); err == nil {
			w.Add(channel.InstalledPackage{Name: name, Path: filepath.Join(d.Path, dir)})
		}
	}
	return true
}
