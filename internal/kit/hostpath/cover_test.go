package hostpath

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestCoversAreLost: what is covered counts as covered as long as it is what it was. Somebody of the host who
// takes it away takes the mount over it as well. The controls: it is renamed away and back, what is in it
// changes, and nothing of the sandbox runs any more.
func TestCoversAreLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(venv string) error
		lost bool
	}{
		"made anew": {func(venv string) error {
			return errors.Join(os.RemoveAll(venv), os.MkdirAll(filepath.Join(venv, "bin"), 0o755))
		}, true},
		"replaced": {func(venv string) error {
			return errors.Join(os.Rename(venv, venv+".was"), os.MkdirAll(filepath.Join(venv, "bin"), 0o755))
		}, true},
		"exchanged": {func(venv string) error {
			return errors.Join(os.MkdirAll(filepath.Join(venv+"2", "bin"), 0o755), os.Rename(venv, venv+".was"), os.Rename(venv+"2", venv))
		}, true},
		"a link to what was there": {func(venv string) error {
			return errors.Join(os.Rename(venv, venv+".was"), os.Symlink(venv+".was", venv))
		}, true},
		"a file": {func(venv string) error { return errors.Join(os.RemoveAll(venv), os.WriteFile(venv, nil, 0o755)) }, true},
		"gone":   {os.RemoveAll, true},
		"control: back again": {func(venv string) error {
			return errors.Join(os.Rename(venv, venv+".was"), os.Rename(venv+".was", venv))
		}, false},
		"control: more is in it": {func(venv string) error { return os.WriteFile(filepath.Join(venv, "bin", "more"), nil, 0o755) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, project := laid(t)
			venv := filepath.Join(project.Path, ".venv")
			must(t, os.MkdirAll(filepath.Join(venv, "bin"), 0o755))
			tree := project.Cover(map[string]Mark{".venv": MarkAt(venv)})
			program := filepath.Join(venv, "bin", "runsc")
			moved := tree
			moved.Path += "-before" // it has another name since
			if _, theirs, err := Within(program, []Tree{tree}); err != nil || theirs || tree.Lost() {
				t.Fatalf("it is covered: %v, %v", theirs, err)
			}
			must(t, c.do(venv))
			for _, one := range []Tree{tree, moved} {
				if _, theirs, err := Within(program, []Tree{one}); err != nil || theirs != c.lost {
					t.Errorf("%s: theirs: %v, %v", one.Path, theirs, err)
				}
			}
			settled := tree.Settled()
			if want := project.Cover(map[string]Mark{".venv": ""}); tree.Lost() != c.lost || c.lost && settled != project || !c.lost && settled != want {
				t.Errorf("lost: %v, settled: %+v", tree.Lost(), settled)
			}
			// Changes that the host makes after the sandbox's end are its own.
			must(t, errors.Join(os.RemoveAll(venv), os.MkdirAll(filepath.Join(venv, "bin"), 0o755)))
			if _, theirs, err := Within(program, []Tree{settled}); err != nil || theirs != c.lost {
				t.Errorf("after the end theirs: %v, %v", theirs, err)
			}
		})
	}
}

// TestMarks: a mark is of one file or directory, whose device may get another number when the host starts.
func TestMarks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		was, now Mark
		want     bool
	}{
		"the same":               {"dir,1,2,3,0", "dir,1,2,3,0", true},
		"after a start":          {"dir,1,2,3,0", "dir,9,2,3,0", true},
		"without a birth":        {"dir,1,2,0,7", "dir,1,2,0,7", true},
		"and after a start":      {"dir,1,2,0,7", "dir,9,2,0,7", false},
		"its inode, born later":  {"dir,1,2,3,0", "dir,1,2,4,0", false},
		"its inode, changed":     {"dir,1,2,0,7", "dir,1,2,0,8", false},
		"another inode":          {"dir,1,2,3,0", "dir,1,5,3,0", false},
		"another type":           {"dir,1,2,3,0", "file,1,2,3,0", false},
		"nothing is there":       {"dir,1,2,3,0", GoneMark, false},
		"nothing was, and is":    {GoneMark, GoneMark, false},
		"nothing is known of it": {"", "", false},
	} {
		if got := c.was.Is(c.now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
