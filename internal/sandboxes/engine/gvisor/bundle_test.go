package gvisor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
)

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
	shown, err := copySkeleton(spec, identity.Identity{}, to)
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
	if _, err := copySkeleton(spec, identity.Identity{}, t.TempDir()); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a mount point in what is shown: %v", err)
	}
	spec.Mounts = []engine.Mount{{Source: template, Destination: "/link/x"}}
	if _, err := copySkeleton(spec, identity.Identity{}, t.TempDir()); err == nil {
		t.Error("a mount point was made through a link that leads out")
	}
}

func TestBundleWithoutHostMountsKeepsTheGofer(t *testing.T) {
	b := bundle{dir: t.TempDir()}
	spec, err := hostproc.Complete(engine.Spec{ID: "a", Root: engine.Root{Kind: engine.RootDir, Path: t.TempDir()}, Init: []string{"/init"}})
	if err != nil {
		t.Fatal(err)
	}
	config, err := b.ociSpec(spec, identity.Identity{})
	if err != nil {
		t.Fatal(err)
	}
	binds := 0
	for _, m := range config.Mounts {
		if m.Type == "bind" && m.Source == b.emptyDir() {
			binds++
		}
	}
	if binds != 1 {
		t.Errorf("mounts: %+v", config.Mounts)
	}
}

func TestAskedMountsWinOverOurs(t *testing.T) {
	b := bundle{dir: t.TempDir()}
	config, err := b.ociSpec(engine.Spec{
		ID: "a", Init: []string{"/init"}, Limits: engine.Limits{MemoryBytes: 1 << 30, DiskBytes: 1 << 30, Pids: 9},
		Mounts: []engine.Mount{{Destination: "/tmp", SizeBytes: 4096, Mode: 0o1777}, {Source: "/usr", Destination: "/run", ReadOnly: true}},
	}, identity.Identity{})
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
	for _, ids := range []identity.Identity{{}, {Single: true}} {
		p := firstProcess(engine.Spec{Init: []string{"/init"}, Limits: engine.Limits{Pids: 9}}, ids)
		c := p.Capabilities
		if len(c.Bounding) != 0 || !p.NoNewPrivileges {
			t.Errorf("single %t: bounding %v, no new privileges %t", ids.Single, c.Bounding, p.NoNewPrivileges)
		}
		if slices.Contains(c.Permitted, "CAP_SETPCAP") {
			t.Errorf("single %t: may set the sets of others: %v", ids.Single, c.Permitted)
		}
		if !slices.Contains(c.Inheritable, "CAP_SETUID") || !slices.Equal(c.Inheritable, c.Permitted) || (len(c.Ambient) > 0) != ids.Single {
			t.Errorf("single %t: %+v", ids.Single, c)
		}
	}
}
