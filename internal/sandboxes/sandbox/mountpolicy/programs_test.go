package mountpolicy

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestProgramsOfTheHost: no sandbox gets to write where the host runs something from, also if that
// is not there yet. The controls: to read there it may, and to write elsewhere.
func TestProgramsOfTheHost(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(dir, "program"), filepath.Join(deep, "program"), filepath.Join(other, "program")} {
		if err := os.WriteFile(file, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{filepath.Join(other, "link"): filepath.Join(deep, "program"), filepath.Join(dir, "link"): filepath.Join(other, "program")} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range map[string]string{
		"in its root": filepath.Join(dir, "program"), "below": filepath.Join(deep, "program"), "by a link from elsewhere": filepath.Join(other, "link"),
		"by a link there": filepath.Join(dir, "link"), "not there yet": filepath.Join(dir, "later"), "written badly": dir + "/a/../program",
	} {
		rules := Rules{Programs: func() []string { return []string{file} }}
		for _, m := range []struct {
			mount  Mount
			passes bool
		}{
			{Mount{Source: dir, Destination: "/w", ReadWrite: true}, false},
			{Mount{Source: dir, Destination: "/w"}, true},
			{Mount{Source: t.TempDir(), Destination: "/w", ReadWrite: true}, true},
		} {
			_, err := rules.Lay(t.Context(), []Mount{m.mount}, nil)
			if (err == nil) != m.passes || err != nil && !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("%s: %+v: %v", name, m.mount, err)
			}
		}
	}
}

// TestDirectoriesOfTools: a mount is no part of a directory in which a program of the host looks for more. The
// controls: what is a tool's home has a user's projects, the root has everything.
func TestDirectoriesOfTools(t *testing.T) {
	home := t.TempDir()
	project, modules := filepath.Join(home, "project"), filepath.Join(home, "modules")
	for _, dir := range []string{project, filepath.Join(modules, "one")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	rules := Rules{Programs: func() []string { return []string{"/", home, modules} }, ToolHomes: func() []string { return []string{home + "/"} }}
	for dir, passes := range map[string]bool{project: true, home: false, modules: false, filepath.Join(modules, "one"): false} {
		if _, err := rules.Lay(t.Context(), []Mount{{Source: dir, Destination: "/w", ReadWrite: true}}, nil); (err == nil) != passes || err != nil && !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
