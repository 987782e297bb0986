//go:build long

package toy

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// line is what a list gets: text behind the first line that has another.
type line struct{ file, behind, text string }

// lines are all that the toys change in files that are there.
func lines() []line {
	return []line{
		{"internal/decide/pkgref/family.go", "		rustFamily{},", "		toyFamily{},"},
		{"internal/decide/lockfile/parse.go", `		"go.work.sum":`, `		"toy.lock": readToy,`},
		{"internal/decide/lockfile/formats_test.go", `		"*.txt":`, `		"toy.lock": toyFormat(),`},
		{"internal/packages/ecosystem/all/all.go", `/internal/packages/ecosystem/pypi"`, `	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/toy"`},
		{"internal/packages/ecosystem/all/all.go", "		pypi.New(),", "		toy.New(),"},
		{"internal/packages/installer/all/all.go", `/internal/packages/installer/pnpm"`, `	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/toy"`},
		{"internal/packages/installer/all/all.go", "		pip.New(),", "		toy.New(),"},
		{"internal/sandboxes/engine/all/all.go", `/internal/sandboxes/engine/gvisor"`, `	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/toy"`},
		{"internal/sandboxes/engine/all/all.go", "		gvisor.New(", "		toy.New(cfg.StateDir, k),"},
	}
}

// TestAToyIsAFolderAndALine builds Cofferdam with the toys laid over it, and runs the tests
// that came with them, and those of what goes by the lists.
func TestAToyIsAFolderAndALine(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	replace := newFiles(t, root)
	if len(replace) < 8 {
		t.Fatalf("the toys have only %d files", len(replace))
	}
	for _, l := range lines() {
		put(t, root, replace, l)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, data, 0o600); err != nil {
		t.Fatal(err)
	}
	b := built{t, root, overlay}
	b.run(root, "go", "build", "-overlay", overlay, "-o", os.DevNull, "./cmd/cofferdam")
	b.run(root, "go", "test", "-vet=off", "-overlay", overlay, "-count=1", "-run", "AToy",
		"./internal/packages/gateway", "./internal/packages/plan", "./internal/decide/admission/claims", "./internal/sandboxes/engine/all")
	b.run(root, "go", "test", "-vet=off", "-overlay", overlay, "-count=1", "-run", "Traits|Formats", "./internal/decide/pkgref", "./internal/decide/lockfile")
	for _, folder := range []string{"ecosystem", "installer", "engine"} {
		b.conforms("./internal/" + folder + "/toy")
	}
}

// built is Cofferdam with the toys.
type built struct {
	t             *testing.T
	root, overlay string
}

func (b built) run(dir string, words ...string) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), words[0], words[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "no tests to run") {
		b.t.Errorf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
}

// conforms runs a toy's own tests, where there is a directory: its folder is none.
func (b built) conforms(pkg string) {
	b.t.Helper()
	program := filepath.Join(b.t.TempDir(), "conforms")
	b.run(b.root, "go", "test", "-c", "-vet=off", "-overlay", b.overlay, "-o", program, pkg)
	if _, err := os.Stat(program); err == nil {
		b.run(b.t.TempDir(), program, "-test.run", "Conformance")
	}
}

// newFiles are the toys' own, each in a place where nothing is.
func newFiles(t *testing.T, root string) map[string]string {
	t.Helper()
	replace := map[string]string{}
	err := filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel("testdata", path)
		if err != nil {
			return err
		}
		from, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		to := filepath.Join(root, rel)
		if _, err := os.Lstat(to); err == nil {
			t.Errorf("%s is there already; a toy adds files and changes none", rel)
		}
		replace[to] = from
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return replace
}

// put lays a list with one more line over the real one.
func put(t *testing.T, root string, replace map[string]string, l line) {
	t.Helper()
	file := filepath.Join(root, l.file)
	from := file
	if before, again := replace[file]; again {
		from = before
	}
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(data), l.behind)
	rest, tail, ended := strings.Cut(after, "\n")
	if !found || !ended {
		t.Fatalf("%s has no line with %q", l.file, l.behind)
	}
	to := filepath.Join(t.TempDir(), filepath.Base(l.file))
	if err := os.WriteFile(to, []byte(before+l.behind+rest+"\n"+l.text+"\n"+tail), 0o600); err != nil {
		t.Fatal(err)
	}
	replace[file] = to
}
