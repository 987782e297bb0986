//go:build long

package microvm_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
)

// TestWhatGoesWrong: machines that end or fall silent by themselves say how, and their
// places are free again.
func TestWhatGoesWrong(t *testing.T) {
	s := newSite(t)
	subject := s.subject(t)
	t.Run("a kernel that panics", func(t *testing.T) { testPanics(t, s, subject) })
	t.Run("a monitor that is killed", func(t *testing.T) { testMonitorKilled(t, s, subject) })
	t.Run("a channel that falls silent", func(t *testing.T) { testSilent(t, s, subject) })
	t.Run("a disk of the host that is full", func(t *testing.T) { testHostDiskFull(t, s) })
}

// ends is how a machine ended, within what a test may last.
func (b box) ends() engine.Exit {
	b.t.Helper()
	exit, err := b.inst.Wait(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return exit
}

// isFree takes away what is left of a machine, and makes another in its place.
func (b box) isFree(s site) {
	b.t.Helper()
	if err := b.inst.Destroy(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	if left := b.Traces(b.id); len(left) > 0 {
		b.t.Errorf("it left %v", left)
	}
	again := s.box(b.t, b.Subject, s.spec(b.id))
	if text, code := again.says("", "echo there"); text != "there" || code != 0 {
		b.t.Errorf("the next in its place says %q, %d", text, code)
	}
}

// testPanics has the hardware report what no kernel can explain.
func testPanics(t *testing.T, s site, subject *enginetest.Subject) {
	t.Helper()
	b := s.box(t, subject, s.spec("panics"))
	tell(t, filepath.Join(s.config().StateDir, "sandboxes", b.id, "microvm", "own", "control"), "inject-nmi")
	exit := b.ends()
	if exit.Code != 134 || exit.Reason != "the sandbox's kernel panicked" || !strings.Contains(exit.Words, "Kernel panic") {
		t.Errorf("%+v", exit)
	}
	b.refuses()
	b.isFree(s)
}

// tell gives a monitor a command by its controls, past the engine.
func tell(t *testing.T, socket, command string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewScanner(conn)
	for _, line := range []string{"", `{"execute": "qmp_capabilities"}`, `{"execute": "` + command + `"}`} {
		if _, err := fmt.Fprintln(conn, line); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() || strings.Contains(answers.Text(), `"error"`) {
			t.Fatalf("%q: %q, %v", line, answers.Text(), answers.Err())
		}
	}
}

// refuses has a machine that has ended say so at once to who asks something of it.
func (b box) refuses() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	if _, err := b.Keeper.Call(ctx, b.id, channel.Call{Kind: channel.CallPing}); err == nil || ctx.Err() != nil {
		b.t.Errorf("a machine that ended answers %v (%v)", err, ctx.Err())
	}
	for name, of := range map[string]func(dir string) error{
		"a freeze": func(dir string) error { return b.inst.(engine.Freezer).Freeze(b.t.Context(), dir) },
		"a snapshot": func(dir string) error {
			return b.inst.(engine.Snapshotter).Snapshot(b.t.Context(), dir, engine.ContentsMemory)
		},
	} {
		dir := filepath.Join(b.t.TempDir(), "image")
		if err := of(dir); err == nil {
			b.t.Errorf("%s of a machine that ended succeeds", name)
		}
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			b.t.Errorf("%s of a machine that ended leaves %s (%v)", name, dir, err)
		}
	}
}

func testMonitorKilled(t *testing.T, s site, subject *enginetest.Subject) {
	t.Helper()
	b := s.box(t, subject, s.spec("killed"))
	known, err := b.Keeper.Get(t.Context(), b.id)
	if err != nil || len(known.Pids) != 1 {
		t.Fatalf("%+v, %v", known, err)
	}
	if err := unix.Kill(known.Pids[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit := b.ends(); exit.Code != 137 || exit.Reason != "killed" {
		t.Errorf("%+v", exit)
	}
	b.refuses()
	b.isFree(s)
}

// testSilent: a machine that answers nothing keeps nobody longer than he waits, and goes.
func testSilent(t *testing.T, s site, subject *enginetest.Subject) {
	t.Helper()
	b := s.box(t, subject, s.spec("silent"))
	if err := b.inst.Signal(t.Context(), int(unix.SIGSTOP)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := b.Keeper.Call(ctx, b.id, channel.Call{Kind: channel.CallPing}); err == nil || ctx.Err() == nil {
		t.Errorf("a machine that stands still answers %v", err)
	}
	b.isFree(s)
}

// testHostDiskFull: where the host has no room for what a machine may write, the machine is
// told, and does not stand still for ever.
func testHostDiskFull(t *testing.T, s site) {
	t.Helper()
	s.dir = filepath.Join(s.dir, "full")
	state := s.config().StateDir
	if err := os.MkdirAll(state, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=48m,mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(state, 0); err != nil {
			t.Error(err)
		}
	})
	subject := s.subject(t)
	spec := s.spec("full")
	spec.Root.Path = filepath.Join(filepath.Dir(s.dir), "root.erofs")
	spec.Mounts[0].Source = filepath.Join(filepath.Dir(s.dir), "agent")
	b := s.box(t, subject, spec)
	if text, code := b.says("", "dd if=/dev/zero of=/home/agent/f bs=1M count=60 && sync /home/agent/f"); code == 0 {
		t.Errorf("it wrote more than there is room for: %s", text)
	}
	// Its memory is there, and the machine runs.
	if text, code := b.says("", "echo there"); text != "there" || code != 0 {
		t.Errorf("it says %q, %d", text, code)
	}
	if err := b.inst.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	if left := subject.Traces(spec.ID); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}
