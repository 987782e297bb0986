package gvisor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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

func TestSkeletonCopiesTheSmallAndShowsTheLarge(t *testing.T) {
	template, to := t.TempDir(), t.TempDir()
	for path, bytes := range map[string]int{"etc/passwd": 10, "usr/lib/big": skeletonBytes + 1, "home/agent/x": 1} {
		if err := os.MkdirAll(filepath.Join(template, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(template, path), make([]byte, bytes), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/absent", filepath.Join(template, "link")); err != nil {
		t.Fatal(err)
	}
	spec := engine.Spec{Root: engine.Root{Kind: engine.RootDir, Path: template}, Mounts: []engine.Mount{
		{Source: template, Destination: "/workspace/deep"},
		{Source: filepath.Join(template, "etc/passwd"), Destination: "/a/file"},
		{Source: template, Destination: "/usr/lib"},
	}}
	shown, err := copySkeleton(spec, identity{}, to)
	if err != nil || len(shown) != 1 || shown[0].Destination != "/usr" || !shown[0].ReadOnly {
		t.Fatalf("shown %+v, %v", shown, err)
	}
	for path, isDir := range map[string]bool{"etc/passwd": false, "home/agent/x": false, "usr": true, "workspace/deep": true, "a/file": false, "proc": true} {
		if info, err := os.Stat(filepath.Join(to, path)); err != nil || info.IsDir() != isDir {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got, err := os.Readlink(filepath.Join(to, "link")); err != nil || got != "/absent" {
		t.Errorf("the link is %q, %v", got, err)
	}
	spec.Mounts = []engine.Mount{{Source: template, Destination: "/usr/absent"}}
	if _, err := copySkeleton(spec, identity{}, t.TempDir()); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a mount point in what is shown: %v", err)
	}
	spec.Mounts = []engine.Mount{{Source: template, Destination: "/link/x"}}
	if _, err := copySkeleton(spec, identity{}, t.TempDir()); err == nil {
		t.Error("a mount point was made through a link that leads out")
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

// TestNothingIsInTheBoundingSet: no program inside can gain a capability, from the first
// moment on; the agent has its own by inheritance, until it gives that up. A rootless
// one, which is not the sandbox's root, needs them as ambient, too.
func TestNothingIsInTheBoundingSet(t *testing.T) {
	for _, ids := range []identity{{}, {single: true}} {
		p := firstProcess(engine.Spec{Init: []string{"/init"}, Limits: engine.Limits{Pids: 9}}, ids)
		c := p.Capabilities
		if len(c.Bounding) != 0 || !p.NoNewPrivileges {
			t.Errorf("single %t: bounding %v, no new privileges %t", ids.single, c.Bounding, p.NoNewPrivileges)
		}
		if slices.Contains(c.Permitted, "CAP_SETPCAP") {
			t.Errorf("single %t: may set the sets of others: %v", ids.single, c.Permitted)
		}
		if !slices.Contains(c.Inheritable, "CAP_SETUID") || !slices.Equal(c.Inheritable, c.Permitted) || (len(c.Ambient) > 0) != ids.single {
			t.Errorf("single %t: %+v", ids.single, c)
		}
	}
}
