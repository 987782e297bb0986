package runc_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/runc"
)

// roleStage makes the test binary the stage of a container.
const roleStage = "runc-stage"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == roleStage {
		if err := stage(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, roleStage+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	enginetest.Main(m)
}

// A stage that writes a snapshot makes heldFile beside it and waits for its end if there is
// a holdFile.
const (
	holdFile = "hold"
	heldFile = "held"
)

func stage(folders []string) error {
	if len(folders) == 1 {
		return runc.Stage(folders[0])
	}
	beside := filepath.Dir(folders[1])
	if _, err := os.Stat(filepath.Join(beside, holdFile)); err == nil {
		if err := os.WriteFile(filepath.Join(beside, heldFile), nil, 0o600); err != nil {
			return err
		}
		time.Sleep(time.Hour)
	}
	return runc.Keep(folders[0], folders[1])
}

// TestSuite runs the contract on an image, and what depends on the form of a root on a
// directory.
func TestSuite(t *testing.T) {
	s := newSite(t)
	t.Run("image", func(t *testing.T) {
		enginetest.Suite(t, func(t *testing.T) *enginetest.Subject {
			t.Helper()
			return s.subject(t, engine.RootImage)
		})
	})
	t.Run("root's files", func(t *testing.T) {
		s := s
		s.owner = 0
		enginetest.SuiteOfRoots(t, func(t *testing.T) *enginetest.Subject {
			t.Helper()
			return s.subject(t, engine.RootImage)
		})
	})
	t.Run("dir", func(t *testing.T) {
		enginetest.SuiteOfRoots(t, func(t *testing.T) *enginetest.Subject {
			t.Helper()
			return s.subject(t, engine.RootDir)
		})
	})
}

// site is an installation of the test's own: directories, a root in both forms, the guest
// agent.
type site struct {
	dir   string
	owner int // who the sandboxes' files belong to on the host
}

func newSite(t *testing.T) site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the engine runc needs root")
	}
	dir, err := os.MkdirTemp("", "rc") //nolint:usetesting // A socket's path must be short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s := site{dir: dir, owner: 12345}
	s.layRoot(t)
	enginetest.LayAgent(t, repository(t), filepath.Join(dir, "agent"))
	for _, path := range []string{dir, filepath.Join(dir, "agent")} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// repository is the repository's root.
func repository(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
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

// layRoot makes a root whose programs are the host's /usr, mounted read-only, and an image
// of the same.
func (s site) layRoot(t *testing.T) {
	t.Helper()
	root := filepath.Join(s.dir, "root")
	for _, dir := range []string{"etc", "usr", "tmp", "run", "dev", "proc", "sys", "home/agent", "root", "opt"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+name, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		"etc/passwd":       "root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n",
		"etc/group":        "root:x:0:\nagent:x:1000:\n",
		"home/agent/lower": "the template's\n",
		"opt/hidden":       "the template's\n",
	} {
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, own := range []string{"home/agent", "home/agent/lower"} {
		if err := os.Chown(filepath.Join(root, own), 1000, 1000); err != nil {
			t.Fatal(err)
		}
	}
	command(t, s.dir, nil, "mkfs.erofs", "-Enoinline_data", filepath.Join(s.dir, "root.erofs"), root)
}

func (s site) config(name string) runc.Config {
	self, err := os.Executable()
	if err != nil {
		panic(err) // the test binary has a path
	}
	return runc.Config{
		Root: filepath.Join(s.dir, "runc.d"), StateDir: filepath.Join(s.dir, name), Place: filepath.Join(s.dir, "place"),
		Stage: []string{self, roleStage}, CgroupParent: fmt.Sprintf("cofferdam-test-%d", os.Getpid()),
	}
}

func (s site) spec(id string, kind engine.RootKind) engine.Spec {
	root := engine.Root{Kind: kind, Path: filepath.Join(s.dir, "root")}
	if kind == engine.RootImage {
		root.Path += ".erofs"
	}
	return engine.Spec{
		ID: id, Root: root, Hostname: "sandbox",
		Mounts: []engine.Mount{
			{Source: "/usr", Destination: "/usr", ReadOnly: true},
			{Source: filepath.Join(s.dir, "agent"), Destination: "/.cofferdam/bin", ReadOnly: true},
		},
		Init: []string{"/.cofferdam/bin/cofferdam-guest"}, Env: []string{"PATH=/usr/bin:/bin"},
		Limits: engine.Limits{MemoryBytes: 512 << 20, DiskBytes: 64 << 20, Pids: 128, CPU: 2},
		Owner:  engine.Owner{UID: 1000, GID: 1000, HostUID: s.owner, HostGID: s.owner},
	}
}

// subject is the engine with its keeper, on a state directory of its own.
func (s site) subject(t *testing.T, kind engine.RootKind) *enginetest.Subject {
	t.Helper()
	cfg := s.config(string(kind))
	socket := filepath.Join(s.dir, string(kind)+".sock")
	k := enginetest.StartKeeper(t, socket)
	return &enginetest.Subject{
		Engine: runc.New(cfg, k), Keeper: k, Socket: socket, Files: true,
		Reopen: func() engine.Engine { return runc.New(cfg, k) },
		Spec:   func(id string) engine.Spec { return s.spec(id, kind) },
		Own:    func(string) string { return "/home/agent" },
		Traces: func(id string) []string {
			var all []string
			for _, pattern := range []string{
				filepath.Join(cfg.StateDir, "sandboxes", id), filepath.Join(cfg.StateDir, "sandboxes", id, "runc", "*"),
				filepath.Join(cfg.Root, id), filepath.Join("/sys/fs/cgroup", "*", cfg.CgroupParent, "*", id),
				filepath.Join("/sys/fs/cgroup", cfg.CgroupParent, "*", id), filepath.Join(cfg.Place, "*"),
				filepath.Join("/sys/fs/cgroup", "*", cfg.CgroupParent, "*", id+".stage"), filepath.Join("/sys/fs/cgroup", cfg.CgroupParent, "*", id+".stage"),
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
