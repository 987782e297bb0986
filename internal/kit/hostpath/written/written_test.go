package written

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made is a new directory.
func made(t *testing.T, at string) hostpath.Tree {
	t.Helper()
	must(t, os.MkdirAll(at, 0o755))
	p, err := hostpath.Resolve(at, nil)
	must(t, err)
	defer p.Close()
	return hostpath.Tree{Path: p.Name, ID: p.ID}
}

func opened(t *testing.T, path string) *Record {
	t.Helper()
	r, err := Open(path)
	must(t, err)
	return r
}

// TestRecord: what was given once is known ever after, also to who only reads.
func TestRecord(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "written")
	if trees, err := Read(file); err != nil || trees != nil {
		t.Errorf("none yet: %v, %v", trees, err)
	}
	a, b := made(t, filepath.Join(dir, "a")), made(t, filepath.Join(dir, "b b\n"))
	r := opened(t, file)
	alone := hostpath.Tree{Path: filepath.Join(dir, "policy.yaml"), ID: hostpath.Identity{Type: hostpath.File, Inode: 1}} // mounted by itself
	must(t, r.Add([]hostpath.Tree{a, a, alone}))
	must(t, r.Add([]hostpath.Tree{b, a}))
	want := []hostpath.Tree{a, alone, b}
	again, err := Read(file)
	must(t, err)
	for _, got := range [][]hostpath.Tree{r.Trees(), again, opened(t, file).Trees()} {
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	// One that is gone is kept: it may have another name now.
	must(t, os.Rename(a.Path, a.Path+"-moved"))
	must(t, r.Add([]hostpath.Tree{made(t, filepath.Join(dir, "c"))}))
	if !slices.Contains(opened(t, file).Trees(), a) {
		t.Error("a directory that was renamed is forgotten")
	}
}

// TestRecordAfterCrash: half a line at the end was told to nobody. Anything else that is none is
// not passed over.
func TestRecordAfterCrash(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "written")
	a, b := made(t, filepath.Join(dir, "a")), made(t, filepath.Join(dir, "b"))
	must(t, opened(t, file).Add([]hostpath.Tree{a, b}))
	text, err := os.ReadFile(file)
	must(t, err)
	first := strings.IndexByte(string(text), '\n') + 1
	for end := first; end < len(text); end++ {
		must(t, os.WriteFile(file, text[:end], 0o600))
		if trees, err := Read(file); err != nil || !slices.Equal(trees, []hostpath.Tree{a}) {
			t.Fatalf("cut at %d: %v, %v", end, trees, err)
		}
		r := opened(t, file)
		must(t, r.Add([]hostpath.Tree{b}))
		if trees := opened(t, file).Trees(); !slices.Equal(trees, []hostpath.Tree{a, b}) {
			t.Fatalf("cut at %d, and added to: %v", end, trees)
		}
	}
	for name, bad := range map[string]string{"garbage": "x\n" + string(text), "no path": "{}\n", "a hole": string(text[:first]) + "\n" + string(text[first:])} {
		must(t, os.WriteFile(file, []byte(bad), 0o600))
		if _, err := Open(file); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Read(file); !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, os.Remove(file))
	must(t, os.Symlink(filepath.Join(dir, "elsewhere"), file))
	if _, err := Open(file); err == nil {
		t.Error("a link was followed to another record")
	}
}

// TestRecordIsBounded: at the bound those leave that are not where they were; if all are, nothing
// more is given, and nothing is forgotten.
func TestRecordIsBounded(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "written")
	r := opened(t, file)
	r.most = 8
	var all []hostpath.Tree
	for i := range r.most {
		all = append(all, made(t, filepath.Join(dir, strconv.Itoa(i))))
	}
	must(t, r.Add(all))
	extra := made(t, filepath.Join(dir, "extra"))
	if err := r.Add([]hostpath.Tree{extra}); !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), file) {
		t.Errorf("past the bound: %v", err)
	}
	must(t, r.Add(all[:3])) // the control: what is known needs no room
	if got := opened(t, file).Trees(); !slices.Equal(got, all) {
		t.Errorf("got %v", got)
	}
	must(t, os.Remove(all[2].Path))
	must(t, os.Rename(all[5].Path, all[5].Path+"-moved"))
	must(t, os.Symlink(all[0].Path, all[5].Path))
	must(t, r.Add([]hostpath.Tree{extra}))
	want := slices.Concat(all[:2], all[3:5], all[6:], []hostpath.Tree{extra})
	if got := opened(t, file).Trees(); !slices.Equal(got, want) || !slices.Equal(r.Trees(), want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRecordThatCannotBeWritten: nothing is believed to be kept that is not.
func TestRecordThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	a := made(t, filepath.Join(dir, "a"))
	r := opened(t, filepath.Join(dir, "none", "written"))
	if err := r.Add([]hostpath.Tree{a}); !errors.Is(err, fault.ErrUnavailable) || len(r.Trees()) != 0 {
		t.Errorf("got %v, and %v", err, r.Trees())
	}
}

// TestRecordAfterBoot: some devices get another number when the host starts. A file on one is where
// it was, so that it stays known at the bound.
func TestRecordAfterBoot(t *testing.T) {
	dir := t.TempDir()
	r := opened(t, filepath.Join(dir, "written"))
	r.most = 2
	before := made(t, filepath.Join(dir, "stays"))
	before.ID.Device += 1 << 20
	gone := made(t, filepath.Join(dir, "gone"))
	must(t, r.Add([]hostpath.Tree{before, gone}))
	must(t, os.Remove(gone.Path))
	fresh := made(t, filepath.Join(dir, "fresh"))
	must(t, r.Add([]hostpath.Tree{fresh}))
	if got, want := r.Trees(), []hostpath.Tree{before, fresh}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
