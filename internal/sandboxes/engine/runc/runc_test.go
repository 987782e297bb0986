package runc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/runc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// box is a container of a test.
type box struct {
	*enginetest.Subject

	t  *testing.T
	id string
}

func (s site) box(t *testing.T, id string) box {
	t.Helper()
	subject := s.subject(t, engine.RootImage)
	spec := subject.Spec(id)
	inst, err := subject.Engine.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inst.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	b := box{Subject: subject, t: t, id: id}
	b.configure()
	return b
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

// says is what a shell of a user inside prints, and its exit code.
func (b box) says(user, script string) (text string, code int) {
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
	defer conn.Close()
	return collect(b.t, conn)
}

func collect(t *testing.T, conn net.Conn) (string, int) {
	t.Helper()
	var text bytes.Buffer
	frames := channel.NewReader(conn)
	for {
		kind, payload, err := frames.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch kind { //nolint:exhaustive // the others say nothing here
		case channel.FrameStdout, channel.FrameStderr:
			text.Write(payload)
		case channel.FrameExit:
			var exit channel.Exit
			if err := channel.DecodeJSON(kind, payload, &exit); err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(text.String()), exit.Code
		}
	}
}

// TestWhatTheKernelRefuses: calls that lead to more of the kernel fail inside, for root,
// too. The same program succeeds on the host, so that it is seen to try.
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
}

// TestWhatTellsOfTheHost: files of the kernel that root reads on the host are empty or
// closed inside, and none of its settings can be written.
func TestWhatTellsOfTheHost(t *testing.T) {
	b := newSite(t).box(t, "tells")
	shown := 0
	for _, path := range []string{"/proc/kallsyms", "/proc/modules", "/proc/cmdline", "/proc/partitions", "/proc/interrupts", "/proc/sys/kernel/random/boot_id", "/proc/diskstats"} {
		if data, err := os.ReadFile(path); err == nil && len(data) > 0 {
			shown++
		}
		if text, _ := b.says("root", "head -c 100 "+path+" 2>/dev/null"); text != "" {
			t.Errorf("%s says %q inside", path, text)
		}
	}
	if shown < 3 {
		t.Errorf("INCONCLUSIVE: the host itself shows %d of these files", shown)
	}
	if text, _ := b.says("root", "ls -A /sys"); text != "" {
		t.Errorf("/sys has %s", text)
	}
	for _, path := range []string{"/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger", "/proc/self/../sys/kernel/hostname"} {
		if text, code := b.says("root", "echo x >"+path); code == 0 {
			t.Errorf("%s was written: %s", path, text)
		}
	}
	if text, code := b.says("root", "echo 0 >/proc/self/oom_score_adj && echo written"); code != 0 {
		t.Errorf("INCONCLUSIVE: nothing below /proc can be written: %s", text)
	}
}

// TestTheHostHasNoneOfItsMounts: while a container runs, the host's mounts are what they
// were; after it no loop device has anything of it.
func TestTheHostHasNoneOfItsMounts(t *testing.T) {
	s := newSite(t)
	b := s.box(t, "mounts")
	inside, code := b.says("", "cat /proc/self/mountinfo")
	if code != 0 || !strings.Contains(inside, " / / rw") || !strings.Contains(inside, "/dev/loop") {
		t.Errorf("INCONCLUSIVE: inside is %s", inside)
	}
	host, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(host), s.dir) {
		t.Errorf("the host has mounts of it (%v):\n%s", err, host)
	}
	if found := loops(t, s.dir); len(found) == 0 {
		t.Error("INCONCLUSIVE: no loop device is found while it runs")
	}
	inst, err := b.Engine.Open(t.Context(), engine.Handle{Engine: runc.Name, ID: b.id, State: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if err := inst.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for len(loops(t, s.dir)) > 0 { // the kernel takes namespaces apart in the background
		if ctx.Err() != nil {
			t.Fatalf("loop devices are left: %v", loops(t, s.dir))
		}
		time.Sleep(time.Millisecond)
	}
}

// loops are the loop devices with files below a folder.
func loops(t *testing.T, dir string) (found []string) {
	t.Helper()
	paths, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), dir) {
			found = append(found, path)
		}
	}
	return found
}

// TestASweepInTheMiddleOfAStart: a start whose daemon has died is ended, and nothing of it
// is left.
func TestASweepInTheMiddleOfAStart(t *testing.T) {
	s := newSite(t)
	slow := filepath.Join(s.dir, "runc")
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'runc version 9'; echo 'libseccomp: 1'; exit; }\nexec sleep 1000\n"
	if err := os.WriteFile(slow, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := s.config("slow")
	cfg.Runc = slow
	k := enginetest.StartKeeper(t, filepath.Join(s.dir, "slow.sock"))
	failed := make(chan error, 1)
	go func() {
		_, err := runc.New(cfg, k).Create(t.Context(), s.spec("slow", engine.RootImage))
		failed <- err
	}()
	dir := filepath.Join(cfg.StateDir, "sandboxes", "slow", "runc")
	for !slept(t, dir) {
		select {
		case err := <-failed:
			t.Fatalf("the start ended before the sweep: %v", err)
		default:
			time.Sleep(time.Millisecond)
		}
	}
	if err := runc.New(cfg, k).Sweep(t.Context(), "slow"); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("the start succeeded")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
	if slept(t, dir) {
		t.Error("its process is left")
	}
}

// slept tells whether the pretended runc of an instance sleeps: in the place of its stage.
func slept(t *testing.T, dir string) bool {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if at, err := os.Readlink(path); err != nil || at != dir {
			continue
		}
		f, err := os.Open(filepath.Join(filepath.Dir(path), "cmdline"))
		if err != nil {
			continue
		}
		data, _ := io.ReadAll(f) // of a process that ends it is empty
		_ = f.Close()
		if strings.HasPrefix(string(data), "sleep\x00") {
			return true
		}
	}
	return false
}

// TestPIDOneIsKnownByItsStart: what the keeper tracks is PID 1 of the container, and its
// start is the one that the kernel tells.
func TestPIDOneIsKnownByItsStart(t *testing.T) {
	b := newSite(t).box(t, "start")
	data, err := os.ReadFile(filepath.Join(filepath.Dir(b.Socket), "runc.d", "start", "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct {
		Pid   int    `json:"init_process_pid"`
		Start uint64 `json:"init_process_start"`
	}
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	now, err := process.Of(record.Pid)
	if err != nil || now != (process.ID{Pid: record.Pid, Start: record.Start}) {
		t.Errorf("runc says %+v, and the kernel %+v (%v)", record, now, err)
	}
	known, err := b.Keeper.Get(t.Context(), b.id)
	if err != nil || len(known.Pids) != 1 || known.Pids[0] != record.Pid {
		t.Errorf("the keeper tracks %v (%v), want %d", known.Pids, err, record.Pid)
	}
}

// TestAskingLeavesNothing: to ask what the engine can do makes no control group that stays,
// and a sandbox has its limits all the same.
func TestAskingLeavesNothing(t *testing.T) {
	s := newSite(t)
	subject := s.subject(t, engine.RootImage)
	if _, err := subject.Engine.Capabilities(t.Context()); err != nil {
		t.Fatal(err)
	}
	parents := func() []string {
		var all []string
		for _, pattern := range []string{"/sys/fs/cgroup/*/", "/sys/fs/cgroup/"} {
			found, err := filepath.Glob(pattern + s.config("").CgroupParent)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, found...)
		}
		return all
	}
	if left := parents(); len(left) > 0 {
		t.Errorf("asking left %v", left)
	}
	inst, err := subject.Engine.Create(t.Context(), subject.Spec("limited"))
	if err != nil {
		t.Fatal(err)
	}
	if stats, err := inst.Stats(t.Context()); err != nil || stats.MemoryBytes == 0 || len(parents()) == 0 {
		t.Errorf("INCONCLUSIVE: %+v, %v, groups %v", stats, err, parents())
	}
	if err := inst.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	if left := parents(); len(left) > 0 {
		t.Errorf("a sandbox left %v", left)
	}
}
