//go:build long

package docker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/docker"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// patience bounds a wait for what must happen.
const patience = 2 * time.Minute

// box is a container of a test.
type box struct {
	*enginetest.Subject

	t    *testing.T
	id   string
	inst engine.Instance
}

func (s site) box(t *testing.T, id string) box {
	t.Helper()
	subject := s.subject(t, engine.RootImage)
	inst, err := subject.Engine.Create(t.Context(), subject.Spec(id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inst.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	b := box{Subject: subject, t: t, id: id, inst: inst}
	b.configure()
	return b
}

// begin starts a shell of a user inside.
func (b box) begin(user, script string) net.Conn {
	b.t.Helper()
	id := "c" + strings.ReplaceAll(time.Now().Format("150405.000000000"), ".", "")
	err := b.Keeper.Exec(b.t.Context(), b.id, channel.Exec{ID: id, Argv: []string{"/bin/sh", "-c", script}, User: user, Dir: "/"}, keeper.ExecOptions{AwaitReader: true})
	if err != nil {
		b.t.Fatal(err)
	}
	conn, err := b.Keeper.Attach(b.t.Context(), b.id, id, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return conn
}

// says is what a shell of a user inside prints, and its exit code.
func (b box) says(user, script string) (text string, code int) {
	b.t.Helper()
	conn := b.begin(user, script)
	defer conn.Close()
	var out bytes.Buffer
	frames := channel.NewReader(conn)
	for {
		kind, payload, err := frames.ReadFrame()
		if err != nil {
			b.t.Fatal(err)
		}
		switch kind { //nolint:exhaustive // the others say nothing here
		case channel.FrameStdout, channel.FrameStderr:
			out.Write(payload)
		case channel.FrameExit:
			var exit channel.Exit
			if err := channel.DecodeJSON(kind, payload, &exit); err != nil {
				b.t.Fatal(err)
			}
			return strings.TrimSpace(out.String()), exit.Code
		}
	}
}

// TestTheStrongestThatWorks: a runtime that is listed and does not run is no wall; the next
// one is taken, and the report says why.
func TestTheStrongestThatWorks(t *testing.T) {
	for name, tt := range map[string]struct {
		runtimes []string
		kernel   bool
	}{
		"runsc before runc":  {[]string{"runsc", "kata-qemu"}, true},
		"runc if no other":   {[]string{"kata-qemu"}, false},
		"runc if alone":      {nil, false},
		"a runsc that fails": {[]string{"runsc-broken"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, tt.runtimes...)
			e := s.subject(t, engine.RootDir).Engine
			caps, err := e.Capabilities(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(caps.Enforces, engine.ControlOwnKernel); got != tt.kernel {
				t.Errorf("a kernel of its own: %t (%s)", got, caps.Missing[engine.ControlOwnKernel])
			}
			if !tt.kernel {
				why := caps.Missing[engine.ControlOwnKernel]
				if !strings.Contains(why, "is runc") {
					t.Errorf("it says %q", why)
				}
				for _, broken := range tt.runtimes {
					if !strings.Contains(why, broken+" does not work") {
						t.Errorf("of %s it says %q", broken, why)
					}
				}
			}
			if left := s.daemon.containers(t, ""); len(left) > 0 {
				t.Errorf("probes left %v", left)
			}
		})
	}
}

// TestWhatTheKernelRefuses: behind runc, calls that lead to more of the kernel fail inside,
// for root, too. The same program succeeds on the host, so that it is seen to try.
func TestWhatTheKernelRefuses(t *testing.T) {
	b := newSite(t).box(t, "refuses")
	for name, script := range map[string]string{
		"a user namespace":    "unshare --user true",
		"a mount namespace":   "unshare --mount true",
		"a key":               `python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None, use_errno=True).syscall(248, b"user", b"k", b"v", 1, -1) < 0)'`,
		"a program in kernel": `python3 -c 'import ctypes, sys; c = ctypes.CDLL(None, use_errno=True); c.syscall(321, 0, 0, 0); sys.exit(ctypes.get_errno() == 1)'`,
	} {
		for _, user := range []string{"", "root"} {
			if text, code := b.says(user, script); code == 0 {
				t.Errorf("%s: the user %q may: %s", name, user, text)
			}
		}
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
			t.Errorf("INCONCLUSIVE: %s fails on the host, too: %v %s", name, err, out)
		}
	}
	for _, path := range []string{"/proc/kallsyms", "/proc/modules", "/proc/cmdline", "/proc/interrupts", "/proc/sys/kernel/random/boot_id"} {
		if text, _ := b.says("root", "head -c 100 "+path+" 2>/dev/null"); text != "" {
			t.Errorf("%s says %q inside", path, text)
		}
	}
	if text, _ := b.says("root", "ls -A /sys"); text != "" {
		t.Errorf("/sys has %s", text)
	}
	for _, path := range []string{"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/new", "/.cofferdam/new"} {
		if text, code := b.says("root", "echo x >"+path); code == 0 {
			t.Errorf("%s was written: %s", path, text)
		}
	}
	if text, code := b.says("root", "echo x >/etc/new && echo written"); code != 0 {
		t.Errorf("INCONCLUSIVE: nothing can be written: %s", text)
	}
}

// TestFilesOfRootStayShut: a mount's files that belong to the host's root are nobody's
// inside, also for root there, which has the same number.
func TestFilesOfRootStayShut(t *testing.T) {
	s := newSite(t)
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shared, "shut"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shared, "open"), []byte("public"), 0o644); err != nil {
		t.Fatal(err)
	}
	subject := s.subject(t, engine.RootImage)
	spec := subject.Spec("shut")
	spec.Mounts = append(spec.Mounts, engine.Mount{Source: shared, Destination: "/shared"})
	inst, err := subject.Engine.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := inst.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	b := box{Subject: subject, t: t, id: "shut", inst: inst}
	b.configure()
	if text, code := b.says("root", "cat /shared/open"); code != 0 || text != "public" {
		t.Errorf("INCONCLUSIVE: an open file can't be read: %q", text)
	}
	for _, script := range []string{"cat /shared/shut", "echo x >/shared/shut", "echo x >/shared/new", "rm -f /shared/open", "chmod 777 /shared/shut"} {
		if text, code := b.says("root", script); code == 0 {
			t.Errorf("%q: %q", script, text)
		}
	}
	if data, err := os.ReadFile(filepath.Join(shared, "shut")); err != nil || string(data) != "secret" {
		t.Errorf("the file is %q (%v)", data, err)
	}
}

func (b box) configure() {
	b.t.Helper()
	_, err := b.Keeper.Call(b.t.Context(), b.id, channel.Call{Kind: channel.CallConfigure, Configure: &channel.Configure{
		Hostname: "sandbox", User: channel.User{Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"},
		Env: map[string]string{"PATH": "/bin:/usr/bin"}, CAPEM: []byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"),
		Limits: channel.ExecLimits{NProc: 100, NoFile: 1024}, Now: time.Now().UnixNano(), Seed: []byte("0123456789abcdef"),
	}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestADaemonThatDiesInMidExec: the sandbox ends, and says so; it can be destroyed without
// the daemon and leaves no process, mount or file; when the daemon is back, what it still
// has on record is removed. A create meanwhile says what is missing.
func TestADaemonThatDiesInMidExec(t *testing.T) {
	s := newSite(t)
	b := s.box(t, "orphaned")
	conn := b.begin("", "echo begun; sleep 1000")
	defer conn.Close()
	frames := channel.NewReader(conn)
	for {
		kind, payload, err := frames.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if kind == channel.FrameStdout && strings.Contains(string(payload), "begun") {
			break
		}
	}
	var born struct{ Process process.ID }
	data, err := os.ReadFile(filepath.Join(s.dir, "image", "sandboxes", "orphaned", "docker", "born.json"))
	if err == nil {
		err = json.Unmarshal(data, &born)
	}
	if err != nil || !born.Process.Is() {
		t.Fatalf("INCONCLUSIVE: the container's process is %+v (%v)", born, err)
	}
	s.daemon.kill(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	exit, err := b.inst.Wait(ctx)
	if err != nil || exit.Code == 0 || exit.OOM {
		t.Errorf("it ended with %+v, %v", exit, err)
	}
	if !strings.Contains(exit.Words, "the Docker daemon has gone") {
		t.Errorf("its last words are %q", exit.Words)
	}
	for { // what the command was to say ends, too
		if _, _, err := frames.ReadFrame(); err != nil {
			break
		}
	}
	if _, err := b.Engine.Create(ctx, b.Spec("late")); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a create without the daemon: %v", err)
	}
	if err := b.inst.Destroy(ctx); err != nil {
		t.Errorf("destroy without the daemon: %v", err)
	}
	if born.Process.Is() {
		if now, err := process.Read(born.Process.Pid); err == nil && !now.Dead {
			t.Errorf("its process %v is left", born.Process)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), "/orphaned") {
		t.Errorf("it left mounts (%v):\n%s", err, mounts)
	}
	if ids, err := b.Engine.List(ctx); err != nil || len(ids) > 0 {
		t.Errorf("it is still listed: %v (%v)", ids, err)
	}
	s.daemon.start(t)
	if len(s.daemon.containers(t, "orphaned")) == 0 {
		t.Error("INCONCLUSIVE: the daemon has nothing of it on record")
	}
	s.daemon.tended(t, b.Engine.(*docker.Engine), "orphaned")
}

// tended has an engine tend what the daemon has, until the daemon says that it has removed a
// sandbox's container.
func (d *daemon) tended(t *testing.T, e *docker.Engine, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := d.client(t)
	defer c.Close()
	// From before now on, so that none is missed that comes before the daemon listens.
	events := c.Events(ctx, client.EventsListOptions{
		Since:   "1",
		Filters: make(client.Filters).Add("type", "container").Add("event", "destroy").Add("label", "dev.cofferdam.sandbox="+id),
	})
	tending, stop := context.WithCancel(ctx)
	var tends sync.WaitGroup
	tends.Go(func() { e.Tend(tending) })
	defer tends.Wait()
	defer stop()
	select {
	case <-events.Messages:
	case err := <-events.Err:
		t.Fatalf("the daemon's record of it stays: %v", err)
	}
	if left := d.containers(t, id); len(left) > 0 {
		t.Errorf("the daemon still has %v", left)
	}
}

// TestAProcessThatNobodyWroteDown: bridge and daemon end before anything is known of the
// container's process; a sandbox that is destroyed then leaves none all the same.
func TestAProcessThatNobodyWroteDown(t *testing.T) {
	s := newSite(t)
	b := s.box(t, "nameless")
	file := filepath.Join(s.dir, "image", "sandboxes", "nameless", "docker", "born.json")
	var born struct{ Process process.ID }
	data, err := os.ReadFile(file)
	if err == nil {
		err = errors.Join(json.Unmarshal(data, &born), os.Remove(file))
	}
	known, failed := b.Keeper.Get(t.Context(), b.id)
	if err := errors.Join(err, failed); err != nil || !born.Process.Is() || len(known.Pids) != 1 {
		t.Fatalf("INCONCLUSIVE: the container's process is %+v, the bridge's %v (%v)", born, known.Pids, err)
	}
	// Held, so that it does nothing when the daemon goes.
	if err := unix.Kill(known.Pids[0], unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.daemon.kill(t)
	if err := unix.Kill(known.Pids[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if now, err := process.Read(born.Process.Pid); err != nil || now.Dead {
		t.Fatalf("INCONCLUSIVE: the container ended by itself: %+v, %v", now, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.inst.Destroy(ctx); err != nil {
		t.Errorf("destroy without the daemon: %v", err)
	}
	if now, err := process.Read(born.Process.Pid); born.Process.Is() && err == nil && !now.Dead {
		t.Errorf("its process %v is left", born.Process)
		_ = born.Process.Signal(unix.SIGKILL)
	}
	s.daemon.start(t)
	s.daemon.tended(t, b.Engine.(*docker.Engine), "nameless")
}

// TestADaemonThatHangs: a sandbox is destroyed without one that takes questions and never
// answers; when it goes on, what it still has on record is removed.
func TestADaemonThatHangs(t *testing.T) {
	s := newSite(t)
	b := s.box(t, "hung")
	var born struct{ Process process.ID }
	data, err := os.ReadFile(filepath.Join(s.dir, "image", "sandboxes", "hung", "docker", "born.json"))
	if err == nil {
		err = json.Unmarshal(data, &born)
	}
	if err != nil || !born.Process.Is() {
		t.Fatalf("INCONCLUSIVE: the container's process is %+v (%v)", born, err)
	}
	if err := s.daemon.cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = b.inst.Destroy(ctx)
	if now, err := process.Read(born.Process.Pid); born.Process.Is() && err == nil && !now.Dead {
		t.Errorf("its process %v is left", born.Process)
	}
	if err := errors.Join(err, s.daemon.cmd.Process.Signal(unix.SIGCONT)); err != nil {
		t.Errorf("destroy beside a daemon that hangs: %v", err)
	}
	s.daemon.tended(t, b.Engine.(*docker.Engine), "hung")
}

// TestABridgeThatDies: the sandbox ends with it, and leaves nothing.
func TestABridgeThatDies(t *testing.T) {
	b := newSite(t).box(t, "cut")
	known, err := b.Keeper.Get(t.Context(), b.id)
	if err != nil || len(known.Pids) != 1 {
		t.Fatalf("the keeper knows %+v (%v)", known, err)
	}
	if err := unix.Kill(known.Pids[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	exit, err := b.inst.Wait(ctx)
	if err != nil || exit.Reason != "killed" {
		t.Errorf("it ended with %+v, %v", exit, err)
	}
	if err := b.inst.Destroy(ctx); err != nil {
		t.Error(err)
	}
	if left := b.Traces(b.id); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// TestImagesAreFew: templates of one form share a skeleton, and a handful of forms is kept.
func TestImagesAreFew(t *testing.T) {
	s := newSite(t)
	subject := s.subject(t, engine.RootDir)
	for i := range 7 {
		spec := subject.Spec("form-" + string(rune('a'+i)))
		root := t.TempDir()
		if err := os.Chmod(root, 0o755); err != nil {
			t.Fatal(err)
		}
		command(t, "/", nil, "cp", "-a", spec.Root.Path+"/.", root)
		if err := os.Mkdir(filepath.Join(root, "form-"+string(rune('a'+i))), 0o755); err != nil {
			t.Fatal(err)
		}
		spec.Root.Path = root
		inst, err := subject.Engine.Create(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := inst.Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.daemon.images(t); n == 0 || n > 4 {
		t.Errorf("%d images are kept", n)
	}
}
