package gvisor_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/gvisor"
)

func TestMain(m *testing.M) {
	enginetest.Main(m, func(args []string) error { return gvisor.Stage(args[0], args[1:]) })
}

// site is an installation of the test's own: directories, a root in both
// forms, the guest agent.
type site struct {
	dir   string
	runsc string
	user  int // who the sandboxes' files belong to on the host
}

// newSite lays a site out. Where the environment names one, a parent test has
// laid it out for this process, which is another user's.
func newSite(t *testing.T) site {
	t.Helper()
	if dir := os.Getenv(siteVariable); dir != "" {
		return site{dir: dir, runsc: filepath.Join(dir, "runsc"), user: os.Geteuid()}
	}
	dir, err := os.MkdirTemp("", "gv") //nolint:usetesting // A socket's path must be short.
	if err != nil {
		t.Fatal(err)
	}
	s := site{dir: dir, runsc: repository(t, "bin", "runsc"), user: 12345}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.layRoot(t)
	enginetest.LayAgent(t, repository(t), filepath.Join(dir, "agent"))
	return s
}

// repository is a path below the repository's root.
func repository(t *testing.T, below ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", "..", "..", ".."}, below...)...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func command(t *testing.T, dir string, env []string, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

// layRoot makes a root whose programs are the host's /usr, mounted read-only,
// and an image of the same.
func (s site) layRoot(t *testing.T) {
	t.Helper()
	root := filepath.Join(s.dir, "root")
	for _, dir := range []string{"etc", "usr", "tmp", "run", "dev", "proc", "sys", "home/agent", "root"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+name, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"passwd": "root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n",
		"group":  "root:x:0:\nagent:x:1000:\n",
	} {
		if err := os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "home/agent/lower"), []byte("the template's\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{"home/agent", "home/agent/lower"} {
		if err := os.Chown(filepath.Join(root, own), 1000, 1000); err != nil {
			t.Fatal(err)
		}
	}
	command(t, s.dir, nil, "mkfs.erofs", "-Enoinline_data", filepath.Join(s.dir, "root.erofs"), root)
}

func (s site) root(kind engine.RootKind) engine.Root {
	if kind == engine.RootImage {
		return engine.Root{Kind: kind, Path: filepath.Join(s.dir, "root.erofs")}
	}
	return engine.Root{Kind: kind, Path: filepath.Join(s.dir, "root")}
}

// spec is a sandbox of this site.
func (s site) spec(id string, kind engine.RootKind) engine.Spec {
	return engine.Spec{
		ID: id, Root: s.root(kind), Hostname: "sandbox",
		Mounts: []engine.Mount{
			{Source: "/usr", Destination: "/usr", ReadOnly: true},
			{Source: filepath.Join(s.dir, "agent"), Destination: "/.cofferdam/bin", ReadOnly: true},
		},
		Init: []string{"/.cofferdam/bin/cofferdam-guest"}, Env: []string{"PATH=/usr/bin:/bin"},
		Limits: engine.Limits{MemoryBytes: 512 << 20, DiskBytes: 64 << 20, Pids: 128, CPU: 2},
		Owner:  engine.Owner{UID: 1000, GID: 1000, HostUID: s.user, HostGID: s.user},
	}
}

func (s site) config(t *testing.T, name string) gvisor.Config {
	t.Helper()
	return gvisor.Config{
		Runsc: s.runsc, Root: filepath.Join(s.dir, "runsc.d"), StateDir: filepath.Join(s.dir, name),
		CgroupParent: fmt.Sprintf("cofferdam-test-%d", os.Getpid()), Stage: enginetest.StageArgv(t),
	}
}

// subject is the engine with its keeper, on a state directory of its own.
func (s site) subject(t *testing.T, kind engine.RootKind) *enginetest.Subject {
	t.Helper()
	name := string(kind) + fmt.Sprint(os.Geteuid())
	cfg := s.config(t, name)
	k := enginetest.StartKeeper(t, filepath.Join(s.dir, name+".sock"))
	return &enginetest.Subject{
		Engine: gvisor.New(cfg, k), Keeper: k, Socket: filepath.Join(s.dir, name+".sock"),
		Reopen:   func() engine.Engine { return gvisor.New(cfg, k) },
		Spec:     func(id string) engine.Spec { return s.spec(id, kind) },
		Own:      func(string) string { return "/home/agent" },
		Elevated: filepath.Join(s.dir, "agent", "cofferdam-guest"),
		Traces: func(id string) []string {
			var all []string
			for _, pattern := range []string{
				filepath.Join(cfg.StateDir, "sandboxes", id), filepath.Join(cfg.StateDir, "sandboxes", id, "gvisor", "*"),
				filepath.Join(cfg.Root, "*"+id+"*"), filepath.Join("/sys/fs/cgroup", "*", cfg.CgroupParent, "*", id),
				filepath.Join("/sys/fs/cgroup", cfg.CgroupParent, "*", id),
			} {
				found, err := filepath.Glob(pattern)
				if err != nil {
					t.Error(err)
				}
				all = append(all, found...)
			}
			return all
		},
	}
}
