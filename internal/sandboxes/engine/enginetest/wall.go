package enginetest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// testWall: what an engine says of its wall fits what it enforces, and hardware is seen
// from the host: a processor of KVM that a process of the instance holds.
func testWall(t *testing.T, s *Subject, caps engine.Capabilities) {
	t.Helper()
	own := slices.Contains(caps.Enforces, engine.ControlOwnKernel)
	switch caps.Wall {
	case engine.WallNone:
		if slices.Contains(caps.Enforces, engine.ControlNoNetwork) {
			t.Error("an engine that enforces something has no wall")
		}
	case engine.WallContainer:
		if own {
			t.Error("a container of the host's kernel has a kernel of its own")
		}
	case engine.WallEmulated, engine.WallUserKernel:
		if !own {
			t.Errorf("behind the wall %s there is no kernel of its own", caps.Wall)
		}
	case engine.WallHardware:
		if !own {
			t.Error("behind a wall of hardware there is no kernel of its own")
		}
		b := s.createBox(t, nil)
		if !holdsProcessor(t, b.id) {
			t.Error("no process of the instance holds a processor of KVM")
		}
	default:
		t.Errorf("there is no wall %q", caps.Wall)
	}
}

// holdsProcessor looks for a process that has the instance's id in its arguments or in the
// path of its control groups, and a virtual processor among its open files.
func holdsProcessor(t *testing.T, id string) bool {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(processes, func(process string) bool {
		arguments, _ := os.ReadFile(filepath.Join(process, "cmdline")) // it may have ended meanwhile
		groups, _ := os.ReadFile(filepath.Join(process, "cgroup"))
		if !strings.Contains(string(arguments)+string(groups), id) {
			return false
		}
		files, _ := filepath.Glob(filepath.Join(process, "fd", "*"))
		return slices.ContainsFunc(files, func(file string) bool {
			to, _ := os.Readlink(file)
			return strings.Contains(to, "kvm-vcpu")
		})
	})
}
