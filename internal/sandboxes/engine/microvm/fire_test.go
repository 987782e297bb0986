package microvm_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/microvm/firecracker/firecrackertest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// TestByFirecracker has machines made, copied and ended by the monitor that has hardware.
func TestByFirecracker(t *testing.T) {
	s := newStand(t)
	subject := s.subject(t)
	caps, err := subject.Engine.Capabilities(t.Context())
	if err != nil || caps.Wall != engine.WallHardware || caps.By != "Firecracker v1.16.2" {
		t.Fatalf("%+v, %v", caps, err)
	}
	source := s.machine(t, subject, "source")
	t.Run("it is shut in", func(t *testing.T) { testFireShutIn(t, source) })
	image := filepath.Join(s.dir, "image")
	s.image = image
	if err := source.Snapshotter().Snapshot(t.Context(), image, engine.ContentsMemory); err != nil {
		t.Fatalf("%v\n%s", err, source.log())
	}
	source.answers()
	t.Run("a monitor without a filter", func(t *testing.T) {
		_, err := subject.Engine.Create(t.Context(), s.spec(firecrackertest.Unfiltered))
		if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "without its filter of system calls") {
			t.Errorf("%v", err)
		}
		if left := subject.Traces(firecrackertest.Unfiltered); len(left) > 0 {
			t.Errorf("it left %v", left)
		}
	})
	t.Run("copies share memory", func(t *testing.T) { testFireCopies(t, s, subject, image) })
	t.Run("what is in a monitor's place", func(t *testing.T) { testTaken(t, source) })
	t.Run("hardware that fails", func(t *testing.T) { testFireBreaks(t, s, source) })
}

// vm is a machine of a test.
type vm struct {
	*enginetest.Subject

	t    *testing.T
	id   string
	dir  string // its folder
	inst engine.Instance
}

func (s *stand) machine(t *testing.T, subject *enginetest.Subject, id string) vm {
	t.Helper()
	inst, err := subject.Engine.Create(t.Context(), s.spec(id))
	return s.made(t, subject, id, inst, err)
}

// made is a machine that goes with the test.
func (s *stand) made(t *testing.T, subject *enginetest.Subject, id string, inst engine.Instance, err error) vm {
	t.Helper()
	v := vm{Subject: subject, t: t, id: id, inst: inst, dir: filepath.Join(s.state(), "sandboxes", id, "microvm")}
	if err != nil {
		t.Fatalf("%v\n%s", err, v.log())
	}
	t.Cleanup(func() {
		if err := inst.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if left := subject.Traces(id); len(left) > 0 {
			t.Errorf("it left %v", left)
		}
	})
	return v
}

func (v vm) Snapshotter() engine.Snapshotter { return v.inst.(engine.Snapshotter) }

func (v vm) log() []byte {
	data, err := os.ReadFile(filepath.Join(v.dir, "microvm.log"))
	if err != nil {
		return nil
	}
	return data
}

// answers wants the agent to answer.
func (v vm) answers() {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), time.Minute)
	defer cancel()
	if _, err := v.Keeper.Call(ctx, v.id, channel.Call{Kind: channel.CallPing}); err != nil {
		v.t.Errorf("%v\n%s", err, v.log())
	}
}

// processes are the monitor's and the carrier's.
func (v vm) processes() (monitor, carrier int) {
	v.t.Helper()
	known, err := v.Keeper.(interface {
		Get(ctx context.Context, id string) (keeper.Sandbox, error)
	}).Get(v.t.Context(), v.id)
	if err != nil || len(known.Pids) != 2 {
		v.t.Fatalf("%+v, %v", known, err)
	}
	return known.Pids[0], known.Pids[1]
}

func proc(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// testFireShutIn looks at both processes from the host.
func testFireShutIn(t *testing.T, v vm) {
	t.Helper()
	monitor, carrier := v.processes()
	read := func(pid int, name string) string {
		data, err := os.ReadFile(proc(pid, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, pid := range []int{monitor, carrier} {
		status := read(pid, "status")
		for _, want := range []string{"\nCapEff:\t0000000000000000\n", "\nNoNewPrivs:\t1\n", "\nGroups:\t \n"} {
			if !strings.Contains(status, want) {
				t.Errorf("process %d has no %q:\n%s", pid, want, status)
			}
		}
		_, uid, _ := strings.Cut(status, "\nUid:\t")
		uid, _, _ = strings.Cut(uid, "\t")
		if n, err := strconv.Atoi(uid); err != nil || n < 1_000_000_000 {
			t.Errorf("process %d is the user %s", pid, uid)
		}
		for _, kind := range []string{"net", "mnt", "ipc", "uts", "pid"} {
			own, err := os.Readlink("/proc/self/ns/" + kind)
			its, failed := os.Readlink(proc(pid, "ns/"+kind))
			if err := errors.Join(err, failed); err != nil || its == own {
				t.Errorf("the namespace %s of process %d is the host's (%v)", kind, pid, err)
			}
		}
		onlyItsRoot(t, pid, "arrive", "bin", "carrier", "dev", "etc", "kernel", "lib", "lib64", "monitor", "own", "root", "usr")
		if entries, err := os.ReadDir(proc(pid, "root")); err != nil || len(entries) < 6 || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "proc" || e.Name() == "tmp" }) {
			t.Errorf("process %d sees %v (%v)", pid, entries, err)
		}
		if dev := read(pid, "net/dev"); strings.Count(dev, ":") != 1 {
			t.Errorf("its interfaces: %s", dev)
		}
	}
	if !strings.Contains(read(monitor, "status"), "\nSeccomp:\t2\n") {
		t.Error("the monitor has no filter of system calls")
	}
	if ns := strings.Fields(read(carrier, "status")[strings.Index(read(carrier, "status"), "NSpid:"):])[2]; ns != "1" {
		t.Errorf("the carrier is number %s of its namespace", ns)
	}
	// Nothing on the host waits for what a machine could connect to.
	entries, err := os.ReadDir(filepath.Join(v.dir, "own"))
	if err != nil {
		t.Fatal(err)
	}
	sockets := 0
	for _, e := range entries {
		if e.Type()&os.ModeSocket != 0 {
			sockets++
			if e.Name() != "control" && e.Name() != "vsock" {
				t.Errorf("there is the socket %s", e.Name())
			}
		}
	}
	if sockets != 2 {
		t.Errorf("INCONCLUSIVE: %d sockets in %v", sockets, entries)
	}
}

// testFireCopies: each is loaded from the image's own files, which it can't write, and answers
// by a channel of its own.
func testFireCopies(t *testing.T, s *stand, subject *enginetest.Subject, image string) {
	t.Helper()
	before, err := os.Stat(filepath.Join(image, "memory"))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"one", "two"} {
		inst, err := subject.Engine.(engine.Restorer).Restore(t.Context(), s.spec(id), image)
		v := s.made(t, subject, id, inst, err)
		v.answers()
		monitor, _ := v.processes()
		shown, err := os.Stat(proc(monitor, "root/arrive/memory"))
		if err != nil || !os.SameFile(before, shown) {
			t.Errorf("%s has other memory than the image's (%v)", id, err)
		}
		mounts, err := os.ReadFile(proc(monitor, "mountinfo"))
		if err != nil || !strings.Contains(string(mounts), "/arrive/memory ro,") {
			t.Errorf("%s may write the image (%v): %s", id, err, mounts)
		}
	}
	if loads := s.hardware.Loads(); len(loads) != 2 || loads[0] != loads[1] {
		t.Errorf("the hardware was to load %q", loads)
	}
	for name, damage := range map[string]func(path string) error{
		"another version": func(p string) error { return os.WriteFile(filepath.Join(p, "machine"), []byte("{}"), 0o600) },
		"no memory":       func(p string) error { return os.Remove(filepath.Join(p, "memory")) },
		"no channel":      func(p string) error { return os.Remove(filepath.Join(p, "line.json")) },
	} {
		bad := filepath.Join(t.TempDir(), "image")
		if err := errors.Join(os.CopyFS(bad, os.DirFS(image)), os.Chmod(filepath.Join(bad, "machine"), 0o600), damage(bad)); err != nil {
			t.Fatal(err)
		}
		if inst, err := subject.Engine.(engine.Restorer).Restore(t.Context(), s.spec("bad"), bad); err == nil || !errors.Is(err, fault.ErrConflict) {
			t.Errorf("%s: %v, %v", name, inst, err)
		}
		if left := subject.Traces("bad"); len(left) > 0 {
			t.Errorf("%s left %v", name, left)
		}
	}
}

// testTaken: a monitor that was taken over puts a link in the place of its disk, and gets
// nothing of the host into an image.
func testTaken(t *testing.T, v vm) {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	disk := filepath.Join(v.dir, "own", "disk-0")
	if err := errors.Join(os.WriteFile(secret, []byte("the host's"), 0o600), os.Rename(disk, disk+"-was"), os.Symlink(secret, disk)); err != nil {
		t.Fatal(err)
	}
	for _, contents := range []engine.Contents{engine.ContentsMemory, engine.ContentsFiles} {
		image := filepath.Join(t.TempDir(), "image")
		if err := v.Snapshotter().Snapshot(t.Context(), image, contents); err == nil {
			t.Errorf("%s: an image was made", contents)
		}
		if _, err := os.Lstat(image); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: there is an image (%v)", contents, err)
		}
	}
	if err := os.Rename(disk+"-was", disk); err != nil {
		t.Fatal(err)
	}
	if err := v.Snapshotter().Snapshot(t.Context(), filepath.Join(t.TempDir(), "image"), engine.ContentsMemory); err != nil {
		t.Errorf("INCONCLUSIVE: its own disk makes none: %v", err)
	}
	v.answers()
}

// testFireBreaks: what ends the monitor in the middle ends both processes, and is told.
func testFireBreaks(t *testing.T, s *stand, v vm) {
	t.Helper()
	_, carrier := v.processes()
	if err := s.hardware.Break(v.id); err != nil {
		t.Fatal(err)
	}
	exit, err := v.inst.Wait(t.Context())
	if err != nil || exit.Code != 1 || exit.Reason != "the machine's monitor stopped with an error" || !strings.Contains(exit.Words, "GenericError") {
		t.Errorf("%+v, %v", exit, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := v.Keeper.Call(ctx, v.id, channel.Call{Kind: channel.CallPing}); err == nil || ctx.Err() != nil {
		t.Errorf("what has ended answers (%v)", ctx.Err())
	}
	if err := unix.Kill(carrier, 0); err == nil {
		data, err := os.ReadFile(proc(carrier, "cmdline"))
		if err == nil && bytes.Contains(data, []byte(v.id)) {
			t.Error("the carrier goes on")
		}
	}
	// The other way: without its carrier a monitor ends.
	other := s.machine(t, v.Subject, "other")
	_, carrier = other.processes()
	if err := unix.Kill(carrier, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit, err := other.inst.Wait(t.Context()); err != nil || exit.Code != 137 || exit.Reason != "killed" {
		t.Errorf("%+v, %v", exit, err)
	}
}
