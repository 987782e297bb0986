package workspace_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
)

// TestApplyGivesTheDirectorysOwner: what root brings over is the owner's of the directory that it goes into; what was there
// keeps its owner.
func TestApplyGivesTheDirectorysOwner(t *testing.T) {
	for _, owner := range []int{0, 1000, 1234} {
		t.Run(fmt.Sprint(owner), func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{"a": "a", "theirs": "t", "sub/b": "b", "other/c": "c", "group/d": "d"})
			const third, group = 4321, 77
			err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
				return errors.Join(err, os.Chown(name, owner, owner))
			})
			if err := errors.Join(err, os.Chown(filepath.Join(dir, "theirs"), third, third), os.Chown(filepath.Join(dir, "other"), third, group), os.Chown(filepath.Join(dir, "group"), 0, group)); err != nil {
				t.Fatal(err)
			}
			w, err := workspace.Make(t.Context(), dir, filepath.Join(t.TempDir(), "w"), nil)
			if err != nil {
				t.Fatal(err)
			}
			write(t, w.Dir(), map[string]string{"a": "a2", "theirs": "t2", "new": "n", "sub/new": "n", "fresh/deep/new": "n", "other/new": "n", "other/dir/new": "n", "group/dir/new": "n"})
			if err := errors.Join(os.Symlink("new", filepath.Join(w.Dir(), "sub", "link")), os.Symlink("d", filepath.Join(w.Dir(), "group", "link"))); err != nil {
				t.Fatal(err)
			}
			if said := apply(t, w, false, "."); len(said) > 0 {
				t.Fatal(said)
			}
			mine, others, roots := fmt.Sprint(owner, owner), fmt.Sprint(third, group), fmt.Sprint(0, group)
			for name, want := range map[string]string{
				"a": mine, "theirs": fmt.Sprint(third, third), "new": mine, "sub/new": mine, "sub/link": mine, "fresh": mine, "fresh/deep": mine,
				"fresh/deep/new": mine, "other/new": others, "other/dir": others, "other/dir/new": others,
				"group/dir": roots, "group/dir/new": roots, "group/link": roots,
			} {
				var st unix.Stat_t
				if err := unix.Lstat(filepath.Join(dir, name), &st); err != nil || fmt.Sprint(st.Uid, st.Gid) != want {
					t.Errorf("%s is %d %d's, not %s's (%v)", name, st.Uid, st.Gid, want, err)
				}
			}
		})
	}
}

// TestApplySaysWhichPathIsLeftOut: files of one name lie in many directories.
func TestApplySaysWhichPathIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"one/deep/name": "a", "two/deep/name": "a"})
	w, err := workspace.Make(t.Context(), dir, filepath.Join(t.TempDir(), "w"), nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w.Dir(), map[string]string{"one/deep/name": "b", "two/deep/name": "b"})
	there := filepath.Join(dir, "two", "deep", "name") // a directory now, of which no file takes the place
	if err := os.Remove(there); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"two/deep/name/x": "x"})
	if said := apply(t, w, true, "."); len(said) != 1 || !strings.HasPrefix(said[0], "two/deep/name is left out: ") {
		t.Errorf("which path is left out: %v", said)
	}
}

// TestApplyFollowsNoLinkToAnotherOwner: a directory that has become a link is no place to bring anything over to, and what it
// leads to keeps its owner.
func TestApplyFollowsNoLinkToAnotherOwner(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"sub/b": "b", "kept/secret": "root's"})
	w, err := workspace.Make(t.Context(), dir, filepath.Join(t.TempDir(), "w"), nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w.Dir(), map[string]string{"sub/new": "n"})
	all, err := w.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "sub")), os.Symlink("kept", filepath.Join(dir, "sub")), os.Chown(dir, 1234, 1234)); err != nil {
		t.Fatal(err)
	}
	_, errs := w.Apply(t.Context(), all, true)
	if said := errors.Join(errs...); said == nil || !strings.Contains(said.Error(), "left out: sub is no directory of the original") {
		t.Errorf("it says %v", said)
	}
	if _, err := os.Lstat(filepath.Join(dir, "kept", "new")); err == nil {
		t.Error("a link was followed")
	}
}
