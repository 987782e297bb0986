package hostproc

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

func TestComplete(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := func() engine.Spec {
		return engine.Spec{
			ID: "a-1", Root: engine.Root{Kind: engine.RootDir, Path: dir}, Init: []string{"/init"},
			Owner: engine.Owner{UID: 1000, GID: 1000, HostUID: 1, HostGID: 1},
		}
	}
	done, err := Complete(good())
	want := engine.Limits{CPU: defaultCPU, MemoryBytes: defaultMemory, DiskBytes: defaultDisk, Pids: defaultPids}
	if err != nil || done.Limits != want {
		t.Errorf("completed to %+v, %v", done.Limits, err)
	}
	mount := func(m engine.Mount) func(*engine.Spec) {
		return func(s *engine.Spec) { s.Mounts = []engine.Mount{m} }
	}
	for name, change := range map[string]func(*engine.Spec){
		"an upper-case id":           func(s *engine.Spec) { s.ID = "A" },
		"a long id":                  func(s *engine.Spec) { s.ID = string(make([]byte, 65)) },
		"a relative PID 1":           func(s *engine.Spec) { s.Init = []string{"init"} },
		"a negative limit":           func(s *engine.Spec) { s.Limits.Pids = -1 },
		"a root of no kind":          func(s *engine.Spec) { s.Root.Kind = "tar" },
		"an image that is none":      func(s *engine.Spec) { s.Root.Kind = engine.RootImage },
		"a directory that is none":   func(s *engine.Spec) { s.Root.Path = file },
		"a root path that climbs":    func(s *engine.Spec) { s.Root.Path = dir + "/../x" },
		"an owner that is root":      func(s *engine.Spec) { s.Owner.UID = 0 },
		"an owner out of range":      func(s *engine.Spec) { s.Owner.GID = 65535 },
		"a mount over the root":      mount(engine.Mount{Source: dir, Destination: "/"}),
		"a mount of nothing":         mount(engine.Mount{Source: dir + "/absent", Destination: "/x"}),
		"a relative mount":           mount(engine.Mount{Source: dir, Destination: "x"}),
		"a memory file system, size": mount(engine.Mount{Destination: "/x"}),
	} {
		spec := good()
		change(&spec)
		if _, err := Complete(spec); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
