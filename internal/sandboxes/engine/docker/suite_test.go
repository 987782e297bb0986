//go:build long

package docker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/docker"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
)

// roleStage makes the test binary a bridge.
const roleStage = "docker-stage"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == roleStage {
		fmt.Fprintln(os.Stderr, roleStage+":", docker.Stage(os.Args[2]))
		os.Exit(1)
	}
	enginetest.Main(m)
}

// TestSuite runs the contract on a real daemon, under each runtime that there is.
func TestSuite(t *testing.T) {
	for _, name := range []string{"runc", "runsc"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, name)
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
		})
	}
}

// site is an installation of the test's own: directories, a root in both forms, the guest
// agent, and a Docker daemon.
type site struct {
	dir     string
	owner   int // who the sandboxes' files belong to on the host
	daemon  *daemon
	noWeak  bool // its runtime has no network, whoever asks
	runtime string
}

func newSite(t *testing.T, runtimes ...string) site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the engine docker needs root")
	}
	dir, err := os.MkdirTemp("", "dk") //nolint:usetesting // A socket's path must be short.
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
	build(t, filepath.Join(dir, "agent", "cofferdam-guest"), "./cmd/cofferdam-guest")
	build(t, filepath.Join(dir, "probe"), "./internal/sandboxes/engine/docker/testdata/probe")
	if err := os.Chmod(filepath.Join(dir, "agent"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.noWeak, s.runtime = slices.Contains(runtimes, "runsc"), strings.Join(runtimes, ", ")
	s.daemon = startDaemon(t, filepath.Join(dir, "d"), runtimes)
	return s
}

// build makes a static program.
func build(t *testing.T, to, what string) {
	t.Helper()
	command(t, filepath.Join("..", "..", "..", ".."), []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-o", to, what)
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
	command(t, s.dir, nil, "mkfs.erofs", "-Enoinline_data", filepath.Join(s.dir, "root.erofs"), root)
}

func (s site) config(name string) docker.Config {
	self, err := os.Executable()
	if err != nil {
		panic(err) // the test binary has a path
	}
	return docker.Config{
		Host: s.daemon.host, StateDir: filepath.Join(s.dir, name), Place: filepath.Join(s.dir, "place"),
		Stage: []string{self, roleStage}, Probe: []string{filepath.Join(s.dir, "probe")},
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
		Engine: docker.New(cfg, k), Keeper: k, Socket: socket, Files: true, NoWeak: s.noWeak, Variant: "with the runtime " + s.runtime,
		Reopen: func() engine.Engine { return docker.New(cfg, k) },
		Spec:   func(id string) engine.Spec { return s.spec(id, kind) },
		Own:    func(string) string { return "/home/agent" },
		Traces: func(id string) []string {
			all := s.daemon.containers(t, id)
			for _, pattern := range []string{
				filepath.Join(cfg.StateDir, "sandboxes", id), filepath.Join(cfg.StateDir, "sandboxes", id, "docker", "*"),
				filepath.Join(cfg.Place, id),
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

// daemon is a Docker daemon of a test.
type daemon struct {
	dir, host string
	cmd       *exec.Cmd
}

// startDaemon runs one with files of its own, that lists runc and these runtimes. The test's
// end ends it, and finds nothing of ours in it.
func startDaemon(t *testing.T, dir string, runtimes []string) *daemon {
	t.Helper()
	config := map[string]any{
		"data-root": filepath.Join(dir, "data"), "exec-root": filepath.Join(dir, "exec"), "pidfile": filepath.Join(dir, "pid"),
		"hosts": []string{"unix://" + filepath.Join(dir, "s")}, "bridge": "none", "iptables": false, "ip-forward": false, "ip-masq": false,
	}
	more := map[string]any{}
	for _, name := range runtimes {
		switch name {
		case "runc": // it is always there
		case "runsc":
			more[name] = map[string]any{"path": builtRunsc(t), "runtimeArgs": []string{"--network=none"}}
		default: // one that is listed and does not work
			more[name] = map[string]any{"path": "/bin/false"}
		}
	}
	config["runtimes"] = more
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	d := &daemon{dir: dir, host: "unix://" + filepath.Join(dir, "s")}
	d.start(t)
	t.Cleanup(func() { d.end(t) })
	return d
}

// builtRunsc is the runsc of this repository.
func builtRunsc(t *testing.T) string {
	t.Helper()
	runsc, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "bin", "runsc"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(runsc); err != nil {
		t.Fatalf("%v: run make build first", err)
	}
	return runsc
}

// start starts the daemon's program and waits until it answers.
func (d *daemon) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	// A process that it starts dies with it, if a test is killed in the middle.
	d.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), "/usr/sbin/dockerd", "--config-file", filepath.Join(d.dir, "config.json"))
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	go func() { // a thread that stays, or the daemon would end with it
		runtime.LockOSThread()
		started <- d.cmd.Start()
		select {}
	}()
	if err := <-started; err != nil {
		t.Fatalf("%v: install the package docker.io", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := d.client(t)
	defer c.Close()
	for {
		if _, err := c.Ping(ctx, client.PingOptions{}); err == nil {
			return
		}
		if ctx.Err() != nil {
			text, _ := os.ReadFile(filepath.Join(d.dir, "log"))
			t.Fatalf("the Docker daemon does not answer:\n%s", text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (d *daemon) client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.WithHost(d.host))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// kill ends the daemon's program at once, as a crash does.
func (d *daemon) kill(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait()
	// The next one takes a dead process that nobody has waited for, for itself.
	for _, name := range []string{"pid", "exec/containerd/containerd.pid"} {
		if err := os.Remove(filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// end ends the daemon, and looks for containers that it still has.
func (d *daemon) end(t *testing.T) {
	t.Helper()
	if left := d.containers(t, ""); len(left) > 0 {
		t.Errorf("the Docker daemon still has %v", left)
	}
	if err := d.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = d.cmd.Wait()
	d.endShims(t)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if at := strings.Fields(line)[4]; strings.HasPrefix(at, d.dir+"/") {
			_ = unix.Unmount(at, unix.MNT_DETACH) // the daemon leaves one of its own
		}
	}
}

// endShims ends what a daemon that was killed had started, and the next one did not find.
func (d *daemon) endShims(t *testing.T) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Error(err)
	}
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Error(err)
		}
		of, err := process.Of(pid)
		if err != nil {
			continue // it has ended
		}
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "\x00"+d.dir+"/exec/") {
			if err := of.Signal(unix.SIGKILL); err != nil && !errors.Is(err, process.ErrOver) {
				t.Error(err)
			}
		}
	}
}

// containers lists the names of those that carry a sandbox's label; of all for "".
func (d *daemon) containers(t *testing.T, id string) []string {
	t.Helper()
	label := "dev.cofferdam.sandbox"
	if id != "" {
		label += "=" + id
	}
	c := d.client(t)
	defer c.Close()
	found, err := c.ContainerList(context.WithoutCancel(t.Context()), client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", label)})
	if err != nil {
		t.Errorf("list containers: %v", err)
		return nil
	}
	var names []string
	for _, item := range found.Items {
		names = append(names, "container "+strings.Join(item.Names, " "))
	}
	return names
}

// images counts those of this engine.
func (d *daemon) images(t *testing.T) int {
	t.Helper()
	c := d.client(t)
	defer c.Close()
	found, err := c.ImageList(t.Context(), client.ImageListOptions{Filters: make(client.Filters).Add("label", "dev.cofferdam.installation")})
	if err != nil {
		t.Fatal(err)
	}
	return len(found.Items)
}
