package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAGroupWithoutItsControllers: a group that was made while its share handed nothing down
// is of no use, and goes.
func TestAGroupWithoutItsControllers(t *testing.T) {
	for name, c := range map[string]struct {
		version int
		handed  string
		files   []string
		useful  bool
	}{
		"all of them":             {2, "cpuset cpu io memory pids\n", []string{"memory.max", "cpu.max", "pids.max"}, true},
		"by another file":         {2, "cpuset cpu io memory pids\n", []string{"memory.max", "cpu.weight", "pids.max"}, true},
		"memory is not":           {2, "cpu pids\n", []string{"cpu.max", "pids.max"}, false},
		"none":                    {2, "\n", nil, false},
		"memory has no files yet": {2, "cpu memory pids\n", []string{"cpu.max", "pids.max"}, false},
		"tasks have no files yet": {2, "cpu memory pids\n", []string{"memory.max", "cpu.max"}, false},
		"cpu has no files yet":    {2, "cpu memory pids\n", []string{"memory.max", "pids.max"}, false},
		"version 1":               {1, "", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "box")
			g := &Group{places: map[Controller]controllerPlace{}}
			for _, controller := range Controllers() {
				g.places[controller] = controllerPlace{version: c.version, parent: dir}
			}
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			list := filepath.Join(dir, "cgroup.controllers")
			if err := os.WriteFile(list, []byte(c.handed), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, file := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := g.offered(); (err == nil) != c.useful || err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%v", err)
			}
		})
	}
	gone := &Group{places: map[Controller]controllerPlace{CPU: {version: 2, parent: filepath.Join(t.TempDir(), "gone")}}}
	if err := gone.offered(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a group that is gone: %v", err)
	}
}

// TestWhatIsTakenAway: a group that another removed is made again, whether it was gone
// before a file of it was opened or after.
func TestWhatIsTakenAway(t *testing.T) {
	for err, want := range map[error]bool{unix.ENOENT: true, unix.ENODEV: true, unix.EBUSY: false, unix.EACCES: false, unix.EINVAL: false} {
		if got := takenAway(&os.PathError{Op: "write", Path: "cgroup.subtree_control", Err: err}); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}
