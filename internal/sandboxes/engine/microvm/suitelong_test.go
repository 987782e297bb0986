//go:build long

package microvm_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/microvm"
)

// TestSuite runs the contract with real machines.
func TestSuite(t *testing.T) {
	s := newSite(t)
	subject := s.subject(t)
	enginetest.Patience(s.calibrate(t, subject))
	enginetest.Suite(t, func(t *testing.T) *enginetest.Subject {
		t.Helper()
		return subject
	})
}

// site is an installation of the test's own: directories, a root, the guest agent.
type site struct {
	dir    string
	kernel string
	agent  []byte
}

func newSite(t *testing.T) site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the engine microvm needs root")
	}
	dir, err := os.MkdirTemp("", "mv") //nolint:usetesting // A socket's path must be short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s := site{dir: dir, kernel: kernelDir(t)}
	s.layRoot(t)
	program := filepath.Join(dir, "agent", "cofferdam-guest")
	command(t, repository(t), []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./cmd/cofferdam-guest")
	for _, path := range []string{dir, filepath.Join(dir, "agent")} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if s.agent, err = os.ReadFile(program); err != nil {
		t.Fatal(err)
	}
	return s
}

// kernelDir is where scripts/deps puts a kernel, unless the host has one.
func kernelDir(t *testing.T) string {
	t.Helper()
	own := filepath.Join(repository(t), ".tools", "kernel")
	if _, err := os.Stat(filepath.Join(own, "boot")); err == nil {
		return own
	}
	return ""
}

func repository(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func command(t *testing.T, dir string, env []string, argv ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return string(out)
}

// programs are those of the host that the root has.
func programs() []string {
	return strings.Fields(`sh bash ls cat echo grep sed cut tail head tr sort seq dd rm rmdir mkdir stat ln chmod sleep timeout md5sum wc date
		id true false uname sync printf stty pwd mknod mount chroot pgrep yes touch mv cp env tee unshare dmesg kill`)
}

// layRoot makes an image of a root with programs of the host.
func (s site) layRoot(t *testing.T) {
	t.Helper()
	root := filepath.Join(s.dir, "root")
	for _, dir := range []string{"etc", "usr/bin", "usr/lib", "usr/lib64", "tmp", "run", "dev", "proc", "sys", "home/agent", "root"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		"etc/passwd":       "root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n",
		"etc/group":        "root:x:0:\nagent:x:1000:\n",
		"home/agent/lower": "the template's\n",
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
	for _, name := range programs() {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		command(t, s.dir, nil, "cp", "-L", path, filepath.Join(root, "usr/bin", name))
		for word := range strings.FieldsSeq(command(t, s.dir, nil, "ldd", path)) {
			if strings.HasPrefix(word, "/") {
				to := filepath.Join(root, word)
				command(t, s.dir, nil, "mkdir", "-p", filepath.Dir(to))
				command(t, s.dir, nil, "cp", "-L", word, to)
			}
		}
	}
	command(t, s.dir, nil, "mkfs.erofs", "--quiet", filepath.Join(s.dir, "root.erofs"), root)
	if err := os.Chmod(filepath.Join(s.dir, "root.erofs"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (s site) config() microvm.Config {
	return microvm.Config{
		Kernel: s.kernel, StateDir: filepath.Join(s.dir, "state"), Agent: func() ([]byte, error) { return s.agent, nil },
		Stage: []string{ownProgram(), roleStage}, CgroupParent: fmt.Sprintf("cofferdam-test-%d", os.Getpid()),
	}
}

func (s site) spec(id string) engine.Spec {
	return engine.Spec{
		ID: id, Root: engine.Root{Kind: engine.RootImage, Path: filepath.Join(s.dir, "root.erofs")}, Hostname: "sandbox",
		Mounts: []engine.Mount{{Source: filepath.Join(s.dir, "agent"), Destination: "/.cofferdam/bin", ReadOnly: true}},
		Init:   []string{"/.cofferdam/bin/cofferdam-guest"}, Env: []string{"PATH=/usr/bin:/bin"},
		Limits: engine.Limits{MemoryBytes: 256 << 20, DiskBytes: 64 << 20, Pids: 128, CPU: 2},
		Owner:  engine.Owner{UID: 1000, GID: 1000, HostUID: 12345, HostGID: 12345},
	}
}

// subject is the engine with its keeper, on a state directory of its own.
func (s site) subject(t *testing.T) *enginetest.Subject {
	t.Helper()
	cfg := s.config()
	socket := filepath.Join(s.dir, "k.sock")
	k := enginetest.StartKeeper(t, socket)
	e := microvm.New(cfg, k)
	return &enginetest.Subject{
		Engine: e, Keeper: k, Socket: socket, Files: true, WeakHost: "10.0.2.2", Variant: variant(t, e),
		Reopen: func() engine.Engine { return microvm.New(cfg, k) },
		Spec:   s.spec,
		Own:    func(string) string { return "/home/agent" },
		Traces: func(id string) []string {
			var all []string
			for _, pattern := range []string{
				filepath.Join(cfg.StateDir, "sandboxes", id), filepath.Join(cfg.StateDir, "sandboxes", id, "microvm", "*"),
				filepath.Join("/sys/fs/cgroup", "*", cfg.CgroupParent, "*", id), filepath.Join("/sys/fs/cgroup", cfg.CgroupParent, "*", id),
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

// variant parts what is proved of machines in hardware from what is proved of emulated ones.
func variant(t *testing.T, e engine.Engine) string {
	t.Helper()
	caps, err := e.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if caps.Wall == engine.WallHardware {
		return "with KVM"
	}
	return ""
}

// calibrate is how long to wait for what must happen on this host, now: many times a boot.
func (s site) calibrate(t *testing.T, subject *enginetest.Subject) time.Duration {
	t.Helper()
	began := time.Now()
	inst, err := subject.Engine.Create(t.Context(), s.spec("calibrate"))
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log("calibrate"))
	}
	took := time.Since(began)
	if err := inst.Destroy(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Logf("a boot takes %v", took)
	return max(30*time.Second, 20*took)
}

// log is what an instance said.
func (s site) log(id string) []byte {
	data, err := os.ReadFile(filepath.Join(s.dir, "state", "sandboxes", id, "microvm", "microvm.log"))
	if err != nil {
		return nil
	}
	return bytes.TrimSpace(data)
}
