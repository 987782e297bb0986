package workspace_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
)

// project makes a directory with files, and a workspace of it.
func project(t *testing.T) (dir string, w *workspace.Workspace) {
	t.Helper()
	dir = t.TempDir()
	write(t, dir, map[string]string{"a.txt": "one\ntwo\nthree\n", "src/b.py": "print(1)\n", "src/deep/c": "c", "run.sh": "#!/bin/sh\n"})
	if err := errors.Join(os.Chmod(filepath.Join(dir, "run.sh"), 0o755), os.Symlink("a.txt", filepath.Join(dir, "link")),
		os.Symlink("/etc/passwd", filepath.Join(dir, "outward")), unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Make(t.Context(), dir, filepath.Join(t.TempDir(), "w"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return dir, w
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(files[name]), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func text(t *testing.T, at ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(at...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func changes(t *testing.T, w *workspace.Workspace) map[string]workspace.Change {
	t.Helper()
	all, err := w.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]workspace.Change{}
	for _, c := range all {
		if (c.Kind == workspace.File && c.How != workspace.Removed) != (c.Seen != workspace.Stamp{}) {
			t.Errorf("%+v", c)
		}
		c.Seen = workspace.Stamp{}
		by[c.Path] = c
	}
	return by
}

// apply brings over what is at paths, and gives what was said of what was left.
func apply(t *testing.T, w *workspace.Workspace, force bool, paths ...string) []string {
	t.Helper()
	all, err := w.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	picked, err := workspace.Pick(all, paths)
	if err != nil {
		t.Fatal(err)
	}
	_, errs := w.Apply(t.Context(), picked, force)
	var said []string
	for _, err := range errs {
		said = append(said, err.Error())
	}
	return said
}

// TestACopyIsTheSame: files, rights and links are there, what is no file is told, and
// nothing has changed.
func TestACopyIsTheSame(t *testing.T) {
	t.Parallel()
	dir, w := project(t)
	for _, name := range []string{"a.txt", "src/b.py", "src/deep/c"} {
		if text(t, dir, name) != text(t, w.Dir(), name) {
			t.Errorf("%s is another", name)
		}
	}
	if info, err := os.Stat(filepath.Join(w.Dir(), "run.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Error(info, err)
	}
	if to, err := os.Readlink(filepath.Join(w.Dir(), "outward")); err != nil || to != "/etc/passwd" {
		t.Error(to, err)
	}
	if got := w.Left(); !slices.Equal(got, []string{"pipe"}) {
		t.Errorf("left out: %v", got)
	}
	if got := changes(t, w); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	again, err := workspace.Open(filepath.Dir(w.Dir()))
	if err != nil {
		t.Fatal(err)
	}
	if got := changes(t, again); len(got) > 0 || again.Original() == "" {
		t.Errorf("%+v", got)
	}
}

// TestChanges: each kind is found, by what is there and not by what its times say; what was
// written anew as it was is none.
func TestChanges(t *testing.T) {
	t.Parallel()
	_, w := project(t)
	at := func(name string) string { return filepath.Join(w.Dir(), name) }
	info, err := os.Stat(at("a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, w.Dir(), map[string]string{"a.txt": "one\nTWO\nthree\n", "src/b.py": "print(1)\n", "new/dir/file": "n"})
	if err := errors.Join(os.Chtimes(at("a.txt"), info.ModTime(), info.ModTime()), os.Chmod(at("run.sh"), 0o644),
		os.Remove(at("link")), os.Symlink("run.sh", at("link")), os.RemoveAll(at("src/deep"))); err != nil {
		t.Fatal(err)
	}
	got := changes(t, w)
	want := map[string]workspace.Change{
		"a.txt":        {How: workspace.Modified, Kind: workspace.File},
		"link":         {How: workspace.Modified, Kind: workspace.Link, Executable: true, Target: "run.sh"},
		"new":          {How: workspace.Added, Kind: workspace.Dir, Executable: true},
		"new/dir":      {How: workspace.Added, Kind: workspace.Dir, Executable: true},
		"new/dir/file": {How: workspace.Added, Kind: workspace.File},
		"run.sh":       {How: workspace.Modified, Kind: workspace.File},
		"src/deep":     {How: workspace.Removed, Kind: workspace.Dir},
	}
	for name, c := range want {
		c.Path = name
		want[name] = c
	}
	if !maps.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	diff, err := w.Diff(got["a.txt"])
	if err != nil || !strings.Contains(diff, "--- a/a.txt\n+++ b/a.txt\n") || !strings.Contains(diff, "\n-two\n+TWO\n") {
		t.Errorf("%v\n%s", err, diff)
	}
	if diff, err := w.Diff(got["run.sh"]); err != nil || diff != "modified run.sh: executable false\n" {
		t.Errorf("%v %q", err, diff)
	}
}

// TestApply brings over what is picked, and nothing else.
func TestApply(t *testing.T) {
	t.Parallel()
	dir, w := project(t)
	write(t, w.Dir(), map[string]string{"a.txt": "changed\n", "src/b.py": "print(2)\n", "new/dir/file": "n"})
	if err := errors.Join(os.Chmod(filepath.Join(w.Dir(), "src/b.py"), 0o4755), os.RemoveAll(filepath.Join(w.Dir(), "src/deep"))); err != nil {
		t.Fatal(err)
	}
	if said := apply(t, w, false, "src/b.py", "new"); said != nil {
		t.Error(said)
	}
	if text(t, dir, "src/b.py") != "print(2)\n" || text(t, dir, "new/dir/file") != "n" || text(t, dir, "a.txt") != "one\ntwo\nthree\n" || text(t, dir, "src/deep/c") != "c" {
		t.Error("something else was brought over")
	}
	if info, err := os.Stat(filepath.Join(dir, "src/b.py")); err != nil || info.Mode() != 0o755 {
		t.Error(info.Mode(), err)
	}
	if said := apply(t, w, false, "src/deep"); said != nil {
		t.Error(said)
	}
	if _, err := os.Stat(filepath.Join(dir, "src/deep")); !os.IsNotExist(err) {
		t.Error(err)
	}
	if got := changes(t, w); len(got) != 1 || got["a.txt"].How != workspace.Modified {
		t.Errorf("what is left: %+v", got)
	}
	if _, err := workspace.Pick(nil, []string{"nowhere"}); err == nil {
		t.Error("nothing was picked")
	}
}

// TestConflicts: what the person did meanwhile stays, unless they say otherwise.
func TestConflicts(t *testing.T) {
	t.Parallel()
	dir, w := project(t)
	write(t, w.Dir(), map[string]string{"a.txt": "theirs\n", "both": "theirs", "src/b.py": "theirs"})
	write(t, dir, map[string]string{"a.txt": "mine\n", "both": "mine"})
	if err := os.Remove(filepath.Join(dir, "src/b.py")); err != nil {
		t.Fatal(err)
	}
	said := apply(t, w, false, ".")
	want := []string{"a.txt is left out: the original's was changed since", "both is left out: the original has one of its own since", "src/b.py is left out: the original's was removed since"}
	if !slices.Equal(said, want) || text(t, dir, "a.txt") != "mine\n" {
		t.Errorf("%q", said)
	}
	if said := apply(t, w, true, "a.txt"); said != nil || text(t, dir, "a.txt") != "theirs\n" {
		t.Error(said)
	}
}

// TestThePersonsChangesStay: whatever the person did to a file, a link or a directory since it
// was copied is a conflict with whatever the run did to it, or to the directory that it is in.
func TestThePersonsChangesStay(t *testing.T) {
	t.Parallel()
	changes := map[string]map[string]func(at string) error{
		"file": {
			"written": func(at string) error { return os.WriteFile(at, []byte("mine"), 0o644) },
			"mode":    func(at string) error { return os.Chmod(at, 0o600) },
			"a link":  func(at string) error { return errors.Join(os.Remove(at), os.Symlink("mine", at)) },
		},
		"link": {
			"leads elsewhere": func(at string) error { return errors.Join(os.Remove(at), os.Symlink("mine", at)) },
			"a file":          func(at string) error { return errors.Join(os.Remove(at), os.WriteFile(at, []byte("mine"), 0o644)) },
		},
		"dir": {
			"mode":       func(at string) error { return os.Chmod(at, 0o700) },
			"a file":     func(at string) error { return errors.Join(os.Remove(at), os.WriteFile(at, []byte("mine"), 0o644)) },
			"a new file": func(at string) error { return os.WriteFile(filepath.Join(at, "new"), []byte("mine"), 0o644) },
		},
	}
	runs := map[string]func(top, at string) error{
		"removed":                   func(_, at string) error { return os.RemoveAll(at) },
		"replaced":                  func(_, at string) error { return errors.Join(os.RemoveAll(at), os.Symlink("theirs", at)) },
		"a directory above removed": func(top, _ string) error { return os.RemoveAll(filepath.Join(top, "in")) },
	}
	for kind, persons := range changes {
		for person, change := range persons {
			for run, do := range runs {
				for _, changed := range []bool{false, true} {
					name := kind + " " + person + ", run: " + run
					dir := t.TempDir()
					write(t, dir, map[string]string{"in/deep/file": "was", "other": "x"})
					deep := filepath.Join(dir, "in", "deep")
					if err := errors.Join(os.Symlink("file", filepath.Join(deep, "link")), os.Mkdir(filepath.Join(deep, "dir"), 0o755)); err != nil {
						t.Fatal(err)
					}
					w, err := workspace.Make(t.Context(), dir, filepath.Join(t.TempDir(), "w"), nil)
					if err != nil {
						t.Fatal(err)
					}
					at := filepath.Join("in", "deep", kind)
					if err := do(w.Dir(), filepath.Join(w.Dir(), at)); err != nil {
						t.Fatal(err)
					}
					if changed {
						if err := change(filepath.Join(dir, at)); err != nil {
							t.Fatal(err)
						}
					}
					before, err := os.Lstat(filepath.Join(dir, at))
					if err != nil {
						t.Fatal(err)
					}
					said := apply(t, w, false, "in")
					after, err := os.Lstat(filepath.Join(dir, at))
					stays := err == nil && after.Mode() == before.Mode() && os.SameFile(before, after)
					refused := strings.Contains(strings.Join(said, "\n"), "it was something else before")
					if changed && (!stays || len(said) == 0) || !changed && !refused && (stays || len(said) > 0) {
						t.Errorf("%s; changed by the person: %t: it stays: %t, and is said: %q", name, changed, stays, said)
					}
				}
			}
		}
	}
}

// TestMeanwhile: what was listed, and read by a person, is what is brought over. A file that has
// changed since then, in the copy or in the original, stays as it is.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	dir, w := project(t)
	write(t, w.Dir(), map[string]string{"a.txt": "read\n", "src/b.py": "read", "src/deep/c": "read", "new": "read"})
	listed, err := w.Changes(t.Context())
	if err != nil || len(listed) != 4 {
		t.Fatal(listed, err)
	}
	write(t, w.Dir(), map[string]string{"a.txt": "evil\n"}) // of the same size
	write(t, dir, map[string]string{"src/b.py": "mine", "new": "mine"})
	applied, errs := w.Apply(t.Context(), listed, false)
	if len(applied) != 1 || applied[0].Path != "src/deep/c" { // the control
		t.Errorf("%+v", applied)
	}
	if len(errs) != 3 || !strings.Contains(errors.Join(errs...).Error(), "a.txt is left out: the copy's was changed since it was listed") {
		t.Errorf("%v", errs)
	}
	if text(t, dir, "a.txt") != "one\ntwo\nthree\n" || text(t, dir, "src/b.py") != "mine" || text(t, dir, "new") != "mine" {
		t.Error("what nobody has read was brought over, or what somebody had written is gone")
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".cofferdam-*")); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

// TestARemovedDirectory in which the person worked meanwhile stays, with all that is in it.
func TestARemovedDirectory(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(dir string) error{
		"a new file": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "src/deep/mine"), []byte("mine"), 0o600)
		},
		"a changed one": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "src/deep/c"), []byte("mine"), 0o600)
		},
		"a pipe": func(dir string) error { return unix.Mkfifo(filepath.Join(dir, "src/mine"), 0o600) },
		"none":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, w := project(t)
			if err := os.RemoveAll(filepath.Join(w.Dir(), "src")); err != nil {
				t.Fatal(err)
			}
			if work == nil { // the control
				if said := apply(t, w, false, "."); said != nil {
					t.Error(said)
				}
				if _, err := os.Lstat(filepath.Join(dir, "src")); !os.IsNotExist(err) {
					t.Error(err)
				}
				return
			}
			if err := work(dir); err != nil {
				t.Fatal(err)
			}
			if said := apply(t, w, false, "."); !slices.Equal(said, []string{"src is left out: something in the original's was changed since"}) {
				t.Errorf("%q", said)
			}
			if text(t, dir, "src/b.py") != "print(1)\n" {
				t.Error("something is gone")
			}
			if said := apply(t, w, true, "."); said != nil {
				t.Error(said)
			}
		})
	}
}

// TestHostileCopies: what a copy may hold writes and reads nothing outside, and takes no
// rights over.
func TestHostileCopies(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	write(t, outside, map[string]string{"victim": "kept"})
	for name, c := range map[string]struct {
		do   func(copied string) error
		said string
	}{
		"a link that leads out": {
			func(at string) error { return os.Symlink(filepath.Join(outside, "victim"), filepath.Join(at, "x")) },
			"x is left out: it is a link that leads out of the directory",
		},
		"one that climbs": {
			func(at string) error { return os.Symlink("src/../../victim", filepath.Join(at, "x")) },
			"x is left out: it is a link that leads out of the directory",
		},
		"a directory that became a link": {func(at string) error {
			return errors.Join(os.RemoveAll(filepath.Join(at, "src")), os.Symlink(outside, filepath.Join(at, "src")))
		}, "src is left out: it was something else before; remove the original's first"},
		"a pipe": {
			func(at string) error { return unix.Mkfifo(filepath.Join(at, "x"), 0o666) },
			"x is left out: it is neither a file, a directory nor a link",
		},
		"a name that moves the cursor": {
			func(at string) error { return os.WriteFile(filepath.Join(at, "x\x1b[2J"), nil, 0o600) },
			`x\x1b[2J is left out: its name is no plain text: it has control characters, or bytes that are no UTF-8`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, w := project(t)
			if err := c.do(w.Dir()); err != nil {
				t.Fatal(err)
			}
			if said := apply(t, w, true, "."); !slices.Equal(said, []string{c.said}) {
				t.Errorf("%q", said)
			}
			if text(t, outside, "victim") != "kept" || text(t, dir, "a.txt") != "one\ntwo\nthree\n" {
				t.Error("something outside was written")
			}
			if _, err := os.Lstat(filepath.Join(dir, "x")); err == nil {
				t.Error("it was brought over")
			}
		})
	}
}

// TestALinkInTheOriginal is not written through: the person's own may lead anywhere.
func TestALinkInTheOriginal(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	dir, w := project(t)
	write(t, w.Dir(), map[string]string{"src/b.py": "theirs"})
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "src")), os.Symlink(outside, filepath.Join(dir, "src"))); err != nil {
		t.Fatal(err)
	}
	if said := apply(t, w, true, "src/b.py"); len(said) != 1 || !strings.Contains(said[0], "src is no directory of the original") {
		t.Errorf("%q", said)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

// TestMakeLeavesNothing: of a copy that fails, or that would lie in what it copies.
func TestMakeLeavesNothing(t *testing.T) {
	t.Parallel()
	dir, _ := project(t)
	folder := filepath.Join(t.TempDir(), "w")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := workspace.Make(ctx, dir, folder, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := os.Lstat(folder); !os.IsNotExist(err) {
		t.Error(err)
	}
	if _, err := workspace.Make(t.Context(), dir, filepath.Join(dir, "sub", "w"), nil); err == nil || !strings.Contains(err.Error(), "would lie in it") {
		t.Error(err)
	}
}

// TestSweep: a copy that nobody has filled to its end is removed, and one that is being filled, or is whole, stays.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir, _ := project(t)
	all := t.TempDir()
	folder := func(name string) string { return filepath.Join(all, name) }
	if _, err := workspace.Make(t.Context(), dir, folder("whole"), nil); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(folder("half"), "copy", "src"), 0o755); err != nil { // its maker was killed
		t.Fatal(err)
	}
	hides := func(*hostpath.Path) (func(string, fs.DirEntry) bool, error) {
		return nil, errors.Join(workspace.Sweep(all), func() error { _, err := os.Lstat(folder("being made")); return err }())
	}
	if _, err := workspace.Make(t.Context(), dir, folder("being made"), hides); err != nil {
		t.Errorf("while it is being made: %v", err)
	}
	if _, err := os.Lstat(folder("half")); !os.IsNotExist(err) {
		t.Errorf("a half copy stays: %v", err)
	}
	for _, name := range []string{"whole", "being made"} {
		if _, err := workspace.Open(folder(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := workspace.Sweep(folder("none")); err != nil {
		t.Error(err)
	}
}

// TestCopyWithoutHidden: a copy has nothing that is hidden, nor is anything of it applied or removed.
func TestCopyWithoutHidden(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"conf/key": "secret", "vault/deep/x": "secret", "src/a": "a"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := workspace.Make(t.Context(), dir, filepath.Join(t.TempDir(), "w"), func(*hostpath.Path) (func(string, fs.DirEntry) bool, error) {
		return func(name string, _ fs.DirEntry) bool { return name == "conf/key" || name == "vault" }, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"conf/key": false, "vault": false, "src/a": true} {
		if _, err := os.Lstat(filepath.Join(w.Dir(), name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if changes, err := w.Changes(t.Context()); err != nil || len(changes) > 0 || w.Hidden() != 2 {
		t.Errorf("%v, %v; %d are hidden", changes, err, w.Hidden())
	}
	// A directory that the run takes away leaves the files that it never saw.
	if err := os.RemoveAll(filepath.Join(w.Dir(), "conf")); err != nil {
		t.Fatal(err)
	}
	changes, err := w.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, errs := w.Apply(t.Context(), changes, false); len(errs) == 0 {
		t.Error("nothing is said of a directory that is left")
	}
	if _, err := os.Lstat(filepath.Join(dir, "conf", "key")); err != nil {
		t.Errorf("a run that never saw it removed it: %v", err)
	}
}
