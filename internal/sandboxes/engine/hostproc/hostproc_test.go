package hostproc

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// TestLookingLeavesNothing: a daemon looks at the host for each engine, also for those that
// never have an instance.
func TestLookingLeavesNothing(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("cofferdam-kept-%d", os.Getpid())
	home := NewHome("e", t.TempDir(), name, os.Geteuid(), nil)
	found := func() (all []string) {
		for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
			dirs, err := filepath.Glob(filepath.Join(pattern, name))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, dirs...)
		}
		return all
	}
	missing := home.Groups().Missing()
	if left := found(); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
	if len(missing) > 0 {
		return // a user without groups, who leaves none
	}
	group, err := home.Group(engine.Spec{ID: "box", Limits: engine.Limits{Pids: 5, CPU: 1, MemoryBytes: 1 << 20}}, 5)
	if err != nil {
		t.Fatalf("an instance's group after that: %v", err)
	}
	if len(found()) == 0 {
		t.Error("INCONCLUSIVE: there is a group, and it is not found")
	}
	if err := group.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if left := found(); len(left) > 0 {
		t.Errorf("the last instance left %v", left)
	}
}

// TestSandboxesUsersPassThrough: what a daemon with a umask of 077 has left does not shut
// sandboxes' users out of the folders of new ones, which they can't list either.
func TestSandboxesUsersPassThrough(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	all := filepath.Join(state, "sandboxes")
	if err := os.Mkdir(all, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := NewHome("e", state, "cofferdam-test", 0, nil).Claim("box")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{all, filepath.Dir(dir), dir} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != fs.FileMode(0o711) {
			t.Errorf("%s: %v %v", dir, info.Mode(), err)
		}
	}
}
