//go:build long

package microvm_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// box is a machine of a test.
type box struct {
	*enginetest.Subject

	t    *testing.T
	id   string
	inst engine.Instance
}

func (s site) box(t *testing.T, subject *enginetest.Subject, spec engine.Spec) box {
	t.Helper()
	inst, err := subject.Engine.Create(t.Context(), spec)
	return s.boxed(t, subject, spec, inst, err)
}

// copied is a machine that is a copy.
func (s site) copied(t *testing.T, subject *enginetest.Subject, spec engine.Spec, image string) box {
	t.Helper()
	inst, err := subject.Engine.(engine.Restorer).Restore(t.Context(), spec, image)
	return s.boxed(t, subject, spec, inst, err)
}

// boxed is a machine that was made, which the test's end destroys, with an identity.
func (s site) boxed(t *testing.T, subject *enginetest.Subject, spec engine.Spec, inst engine.Instance, err error) box {
	t.Helper()
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log(spec.ID))
	}
	t.Cleanup(func() {
		if err := inst.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if left := subject.Traces(spec.ID); len(left) > 0 {
			t.Errorf("it left %v", left)
		}
	})
	_, err = subject.Keeper.Call(t.Context(), spec.ID, channel.Call{Kind: channel.CallConfigure, Configure: &channel.Configure{
		Hostname: "sandbox", User: channel.User{Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"},
		Env: map[string]string{"PATH": "/bin:/usr/bin"}, CAPEM: []byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"),
		Limits: channel.ExecLimits{NProc: 100, NoFile: 1024}, Now: time.Now().UnixNano(), Seed: []byte("0123456789abcdef"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return box{Subject: subject, t: t, id: spec.ID, inst: inst}
}

// mostSaid bounds the wait for the end of a command in a machine, which may stand still.
const mostSaid = 3 * time.Minute

// says is what a shell of a user inside prints, and its exit code.
func (b box) says(user, script string) (text string, code int) {
	b.t.Helper()
	id := "c" + strconv.FormatInt(time.Now().UnixNano(), 36)
	err := b.Keeper.Exec(b.t.Context(), b.id, channel.Exec{ID: id, Argv: []string{"/bin/sh", "-c", script}, User: user, Dir: "/"}, keeper.ExecOptions{AwaitReader: true})
	if err != nil {
		b.t.Fatal(err)
	}
	conn, err := b.Keeper.Attach(b.t.Context(), b.id, id, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(mostSaid)); err != nil {
		b.t.Fatal(err)
	}
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

// status is a line of a process's status on the host.
func status(t *testing.T, pid int, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("the status of %d has no %s", pid, name)
	return ""
}

// TestMachine has one machine tried in many ways.
func TestMachine(t *testing.T) {
	s := newSite(t)
	subject := s.subject(t)
	folder := filepath.Join(s.dir, "folder")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "f"), []byte("given\n"), 0o600),
		os.Chown(folder, 12345, 12345), os.Chown(filepath.Join(folder, "f"), 12345, 12345)); err != nil {
		t.Fatal(err)
	}
	spec := s.spec("machine")
	spec.Mounts = append(
		spec.Mounts,
		engine.Mount{Source: folder, Destination: "/data", ReadOnly: true},
		engine.Mount{Source: filepath.Join(folder, "f"), Destination: "/etc/one", ReadOnly: true},
		engine.Mount{Destination: "/small", SizeBytes: 4096, Mode: 0o555, ReadOnly: true},
	)
	b := s.box(t, subject, spec)
	t.Run("the monitor is shut in", func(t *testing.T) { testShutIn(t, b) })
	t.Run("folders are copied", func(t *testing.T) { testCopied(t, b, folder) })
	t.Run("what root can't do inside", func(t *testing.T) { testRootInside(t, b) })
	t.Run("refused mounts", func(t *testing.T) { testRefusedMounts(t, s, subject) })
	t.Run("an agent that ends", func(t *testing.T) { testAgentEnds(t, s, subject) })
}

// testShutIn looks at the monitor from the host: it is nobody, can do nothing, and sees
// nothing. This process, which is none of that, shows that the looks see it.
func testShutIn(t *testing.T, b box) {
	t.Helper()
	known, err := b.Keeper.Get(t.Context(), b.id)
	if err != nil || len(known.Pids) != 1 {
		t.Fatalf("%+v, %v", known, err)
	}
	pid, self := known.Pids[0], os.Getpid()
	for name, want := range map[string]string{"CapEff": "0000000000000000", "CapPrm": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2", "Groups": ""} {
		if got := status(t, pid, name); got != want {
			t.Errorf("the monitor has %s %q", name, got)
		}
	}
	if got := status(t, self, "CapEff"); strings.Trim(got, "0") == "" {
		t.Errorf("INCONCLUSIVE: this process has CapEff %s", got)
	}
	uid, _, _ := strings.Cut(status(t, pid, "Uid"), "\t")
	if n, err := strconv.Atoi(uid); err != nil || n < 1_000_000_000 {
		t.Errorf("it is the user %s", uid)
	}
	for _, kind := range []string{"net", "mnt", "ipc", "uts"} {
		own, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		if its, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/" + kind); err != nil || its == own {
			t.Errorf("its namespace %s is the host's (%v)", kind, err)
		}
	}
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/net/dev")
	if err != nil || strings.Count(string(data), ":") != 1 || !strings.Contains(string(data), "lo:") {
		t.Errorf("its interfaces (%v): %s", err, data)
	}
	seen, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/root")
	var names []string
	for _, entry := range seen {
		names = append(names, entry.Name())
	}
	for _, name := range names {
		if !slices.Contains([]string{"bin", "dev", "etc", "kernel", "lib", "lib64", "memory", "own", "root", "usr"}, name) {
			t.Errorf("it sees %s", name)
		}
	}
	if err != nil || len(names) < 6 {
		t.Errorf("INCONCLUSIVE: its root has %v (%v)", names, err)
	}
	if _, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/root/proc/self"); err == nil {
		t.Error("it sees processes")
	}
	onlyItsRoot(t, pid, names...)
	// Its memory is its own, and nothing can be put in its place.
	for name, want := range map[string]struct {
		mode os.FileMode
		uid  string
	}{"memory": {os.ModeDir | 0o755, "0"}, "memory/ram": {0o600, uid}} {
		info, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/root/" + name)
		if err != nil || info.Mode() != want.mode || strconv.Itoa(int(info.Sys().(*syscall.Stat_t).Uid)) != want.uid {
			t.Errorf("/%s is %v (%v), want %v of the user %s", name, info, err, want.mode, want.uid)
		}
	}
}

// testCopied: what was there at the start, as the user's, and no way to write.
func testCopied(t *testing.T, b box, folder string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, "later"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, code := b.says("", "stat -c %u:%g:%a /data/f && cat /data/f /etc/one && ls /data && ls -A /small")
	if want := "1000:1000:600\ngiven\ngiven\nf"; got != want || code != 0 {
		t.Errorf("%q, %d; want %q", got, code, want)
	}
	for _, write := range []string{"echo x >/data/f", "touch /data/new", "rm /data/f", "echo x >/etc/one", "rm /etc/one", "touch /small/x"} {
		for _, user := range []string{"", "root"} {
			if text, code := b.says(user, write); code == 0 {
				t.Errorf("%q succeeded for the user %q: %s", write, user, text)
			}
		}
	}
	if data, err := os.ReadFile(filepath.Join(folder, "f")); err != nil || string(data) != "given\n" {
		t.Errorf("the host's file is %q (%v)", data, err)
	}
}

// testRootInside: root without capabilities owns what the kernel says is root's, so that it
// must not be there, or not be written.
func testRootInside(t *testing.T, b box) {
	t.Helper()
	for name, script := range map[string]string{
		"the kernel's settings":    "echo 1 >/proc/sys/kernel/panic",
		"the kernel's end":         "echo c >/proc/sysrq-trigger",
		"a user namespace":         "unshare --user true",
		"a mount":                  "mount -t tmpfs x /tmp",
		"the disks":                "ls /dev/vd* /dev/vport* /sys/block/* 2>/dev/null",
		"the kernel's log":         "dmesg",
		"the console":              "test -c /dev/console || test -c /dev/ttyS0 || test -c /dev/hvc0 || mknod /tmp/c c 4 64",
		"ports":                    "dd if=/dev/port of=/dev/null bs=1 count=1 || dd if=/dev/mem of=/dev/null bs=1 count=1",
		"a device":                 "mknod /tmp/d b 254 0 && cat /tmp/d",
		"the first program's file": "ls /machine.json /modules /lower /scratch 2>/dev/null",
	} {
		if text, code := b.says("root", script); code == 0 {
			t.Errorf("%s: %s", name, text)
		}
	}
	if text, code := b.says("root", "touch /root/x && id -u"); code != 0 || text != "0" {
		t.Errorf("INCONCLUSIVE: root is not root: %s", text)
	}
	if text, _ := b.says("", "cat /proc/net/dev | tail -n +3 | cut -d: -f1"); text != "lo" {
		t.Errorf("the machine has the interfaces %q", text)
	}
}

// testRefusedMounts: what can't be shown says so, and leaves nothing.
func testRefusedMounts(t *testing.T, s site, subject *enginetest.Subject) {
	t.Helper()
	secret := filepath.Join(s.dir, "secret")
	if err := errors.Join(os.Mkdir(secret, 0o755), os.WriteFile(filepath.Join(secret, "f"), []byte("root's"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		mount engine.Mount
		want  error
		says  string
	}{
		"to be written":       {engine.Mount{Source: s.dir, Destination: "/w"}, fault.ErrUnavailable, "can't be mounted for writing"},
		"another's file":      {engine.Mount{Source: filepath.Join(secret, "f"), Destination: "/f", ReadOnly: true}, fault.ErrInvalid, "can't be read by the user 12345"},
		"a folder of another": {engine.Mount{Source: secret, Destination: "/f", ReadOnly: true}, fault.ErrInvalid, "can't be copied"},
		"a socket":            {engine.Mount{Source: subject.Socket, Destination: "/s", ReadOnly: true}, fault.ErrInvalid, "no regular file"},
	} {
		spec := s.spec("refused")
		spec.Mounts = append(spec.Mounts, c.mount)
		inst, err := subject.Engine.Create(t.Context(), spec)
		if err == nil {
			t.Errorf("%s: it was made: %v", name, inst.Destroy(t.Context()))
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if left := subject.Traces(spec.ID); len(left) > 0 {
			t.Errorf("%s left %v", name, left)
		}
	}
}

// testAgentEnds: a machine whose first process ends at once is an error of its start, with
// the kernel's words.
func testAgentEnds(t *testing.T, s site, subject *enginetest.Subject) {
	t.Helper()
	spec := s.spec("ends")
	spec.Init = []string{"/bin/sh", "-c", "exit 3"}
	inst, err := subject.Engine.Create(t.Context(), spec)
	if err == nil {
		t.Fatalf("it was made: %v", inst.Destroy(t.Context()))
	}
	if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "exitcode=0x00000300") {
		t.Errorf("%v", err)
	}
	if left := subject.Traces(spec.ID); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}
