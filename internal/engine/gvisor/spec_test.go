package gvisor

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
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
	done, err := complete(good())
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
		if _, err := complete(spec); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBundleWithoutHostMountsKeepsTheGofer(t *testing.T) {
	b := bundle{dir: t.TempDir()}
	spec, err := complete(engine.Spec{ID: "a", Root: engine.Root{Kind: engine.RootDir, Path: t.TempDir()}, Init: []string{"/init"}})
	if err != nil {
		t.Fatal(err)
	}
	config, err := b.spec(spec, identity{})
	if err != nil {
		t.Fatal(err)
	}
	binds := 0
	for _, m := range config.Mounts {
		if m.Type == "bind" && m.Source == b.empty() {
			binds++
		}
	}
	if binds != 1 {
		t.Errorf("mounts: %+v", config.Mounts)
	}
}

func TestAskedMountsWinOverOurs(t *testing.T) {
	b := bundle{dir: t.TempDir()}
	config, err := b.spec(engine.Spec{
		ID: "a", Init: []string{"/init"}, Limits: engine.Limits{MemoryBytes: 1 << 30, DiskBytes: 1 << 30, Pids: 9},
		Mounts: []engine.Mount{{Destination: "/tmp", SizeBytes: 4096, Mode: 0o1777}, {Source: "/usr", Destination: "/run", ReadOnly: true}},
	}, identity{})
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for _, m := range config.Mounts {
		at[m.Destination]++
	}
	if at["/tmp"] != 1 || at["/run"] != 1 || at["/dev/shm"] != 1 {
		t.Errorf("mounts by place: %v", at)
	}
}
