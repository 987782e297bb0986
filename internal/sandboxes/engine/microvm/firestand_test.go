package microvm_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/microvm"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/microvm/firecracker/firecrackertest"
)

// stand is an installation whose monitor speaks Firecracker's API, and whose machines are
// processes with the real agent.
type stand struct {
	dir      string
	hardware *firecrackertest.Hardware
	image    string // of which guests are copies
}

func newStand(t *testing.T) *stand {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the engine microvm needs root")
	}
	dir, err := os.MkdirTemp("", "fc") //nolint:usetesting // A socket's path must be short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	modules := filepath.Join(dir, "kernel/lib/modules/6.1.0")
	builtin := "kernel/" + strings.Join(microvm.Modules(), ".ko\nkernel/") + ".ko\n"
	if err := errors.Join(
		os.Chmod(dir, 0o755),
		os.MkdirAll(filepath.Join(dir, "kernel/boot"), 0o755), os.MkdirAll(filepath.Join(modules, "kernel"), 0o755),
		os.WriteFile(filepath.Join(dir, "kernel/boot/vmlinuz-6.1.0"), nil, 0o644),
		os.WriteFile(filepath.Join(dir, "kernel/boot/vmlinux-6.1.0"), []byte("\x7fELF"), 0o644),
		os.WriteFile(filepath.Join(modules, "modules.builtin"), []byte(builtin), 0o644),
		os.WriteFile(filepath.Join(dir, "root.erofs"), nil, 0o644),
	); err != nil {
		t.Fatal(err)
	}
	s := &stand{dir: dir}
	s.hardware = firecrackertest.NewHardware(t, dir, microvm.ChannelPort, func(name string, copied bool) *exec.Cmd {
		argv := enginetest.PlainInit(t, filepath.Join(dir, "root-"+name))
		if copied {
			argv = []string{argv[0], roleCopy, argv[2], filepath.Join(s.image, "line.json")}
		}
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = []string{"PATH=/usr/bin:/bin"}
		return cmd
	})
	return s
}

func (s *stand) state() string { return filepath.Join(s.dir, "state") }

func (s *stand) config(t *testing.T) microvm.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return microvm.Config{
		Firecracker: self, QEMU: "/absent/qemu", Kernel: filepath.Join(s.dir, "kernel"), StateDir: s.state(),
		Agent: func() ([]byte, error) { return []byte("the agent"), nil },
		Stage: []string{ownProgram(), roleStage}, CgroupParent: fmt.Sprintf("cofferdam-test-fc-%d", os.Getpid()),
	}
}

func (s *stand) spec(id string) engine.Spec {
	return engine.Spec{
		ID: id, Root: engine.Root{Kind: engine.RootImage, Path: filepath.Join(s.dir, "root.erofs")}, Hostname: "sandbox",
		Init: []string{"/init"}, Env: []string{"PATH=/usr/bin:/bin"},
		Limits: engine.Limits{MemoryBytes: 128 << 20, DiskBytes: 16 << 20, Pids: 128, CPU: 1},
		Owner:  engine.Owner{UID: 1000, GID: 1000, HostUID: 12345, HostGID: 12345},
	}
}

func (s *stand) subject(t *testing.T) *enginetest.Subject {
	t.Helper()
	cfg := s.config(t)
	socket := filepath.Join(s.dir, "k.sock")
	k := enginetest.StartKeeper(t, socket)
	reopen := func() engine.Engine { return microvm.New(cfg, k).OnHardware(s.hardware.Device) }
	return &enginetest.Subject{
		Engine: reopen(), Reopen: reopen, Keeper: k, Socket: socket, NoWeak: true, Spec: s.spec,
		Own: func(string) string { return "/tmp" },
		Traces: func(id string) []string {
			var all []string
			for _, pattern := range []string{
				filepath.Join(s.state(), "sandboxes", id), filepath.Join(s.state(), "sandboxes", id, "microvm", "*"),
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
