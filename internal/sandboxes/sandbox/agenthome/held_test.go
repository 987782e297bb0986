package agenthome

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome/agenthometest"
)

// waysWithoutAName are those in which a sandbox whose kernel is the host's keeps what has no name, each with what is to be found.
// TestNoOtherKindIsKeptSo has what can't be.
func waysWithoutAName() map[string]open {
	counts := open{files: 1, bytes: agenthometest.Held}
	thing := open{files: 1}
	sent := open{unseen: Unseen{Messages: 1}}
	mapped, within, hidden := counts, open{unseen: Unseen{Messages: 1, Sockets: 1}}, open{unseen: Unseen{Sockets: 1}}
	if os.Geteuid() != 0 {
		mapped, within, hidden = open{unseen: Unseen{Mapped: 1}}, sent, open{}
	}
	all := map[string]open{
		agenthometest.Named: {}, agenthometest.Open: counts, agenthometest.InThread: counts, agenthometest.Mapped: mapped, agenthometest.Sent: sent, agenthometest.SentSent: within,
		agenthometest.FirstEnded: counts, agenthometest.FirstEndedMapped: mapped, agenthometest.Elsewhere: counts, agenthometest.Long: counts, agenthometest.Listening: sent, agenthometest.Unaccepted: sent,
		agenthometest.Polled: hidden, agenthometest.Asked: hidden, agenthometest.Copies: {unseen: Unseen{Calls: 1}}, agenthometest.Sending: {unseen: Unseen{Calls: 1}},
		agenthometest.Waits: {files: 1, bytes: agenthometest.Held, unseen: Unseen{Calls: 1}},
	}
	for _, way := range []string{agenthometest.WorksIn, agenthometest.WorksInThread, agenthometest.RootInThread} {
		all[agenthometest.Of(agenthometest.Directory, way)] = thing
	}
	for _, kind := range []string{agenthometest.Directory, agenthometest.Link, agenthometest.Fifo} {
		for way, want := range map[string]open{
			agenthometest.Named: {}, agenthometest.Open: thing, agenthometest.InThread: thing, agenthometest.FirstEnded: thing, agenthometest.Sent: sent, agenthometest.SentSent: within,
			agenthometest.Listening: sent, agenthometest.Unaccepted: sent, agenthometest.Polled: hidden, agenthometest.Asked: hidden, agenthometest.Sending: {unseen: Unseen{Calls: 1}},
		} {
			all[agenthometest.Of(kind, way)] = want
		}
		if kind != agenthometest.Link { // of one there is no descriptor that could be locked
			all[agenthometest.Of(kind, agenthometest.Waits)] = open{files: 1, unseen: Unseen{Calls: 1}}
		}
	}
	return all
}

// TestWhatIsHeldWithoutAName: what is removed counts, or it is told that there is something, in whichever way a process holds it and
// whatever it is. The controls have a name.
func TestWhatIsHeldWithoutAName(t *testing.T) {
	t.Parallel()
	for way, want := range waysWithoutAName() {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			dir, place := homeOf(t)
			agenthometest.Start(t, way, place)
			waited := map[string]bool{}
			first, failed := readUnlinked(t.Context(), dir, of("7/work"), waited)
			if n := first["7/work"].unseen.Calls; (n > 0) != strings.HasPrefix(way, agenthometest.Sending) || failed != nil {
				t.Errorf("at first found are %d calls, %v", n, failed)
			}
			found, err := readUnlinked(t.Context(), dir, of("7/work"), waited)
			got := found["7/work"]
			if strings.HasSuffix(way, agenthometest.Directory) && got.files > 0 && got.bytes < leastOf(t, dir) {
				t.Errorf("the directory has %d bytes", got.bytes)
			}
			if strings.Contains(way, agenthometest.Of("", "")) {
				got.bytes = 0 // each file system has its own
			}
			if err != nil || got != want {
				t.Errorf("found is %+v, %v; want %+v", found, err, want)
			}
		})
	}
}

// TestAConnectionToTheHostHidesNothing: what a process of the host has accepted is in the network of the sandbox that connected, and
// none of its processes has it. TestWhatIsHeldWithoutAName has what is hidden behind a socket of its own.
func TestAConnectionToTheHostHidesNothing(t *testing.T) {
	t.Parallel()
	dir, place := homeOf(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(place, agenthometest.Service))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	agenthometest.Start(t, agenthometest.Connects, place)
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if found, err := readUnlinked(t.Context(), dir, of("7/work"), map[string]bool{}); err != nil || len(found) > 0 {
		t.Errorf("found is %+v, %v", found, err)
	}
}

// TestACallThatGivesFilesBack is known by its number and, where older programs have one number for all calls of sockets, by its
// first argument, of which the kernel takes the lower half.
func TestACallThatGivesFilesBack(t *testing.T) {
	t.Parallel()
	older := runtime.GOARCH == "amd64"
	for call, want := range map[string]bool{
		strconv.Itoa(unix.SYS_SENDMSG) + " 0x3": true, strconv.Itoa(unix.SYS_EXECVE) + " 0x0": true, strconv.Itoa(unix.SYS_READ) + " 0x10": false,
		"102 0x10": older, "102 0xff00000010": older, "102 0x14": older, "102 0x5": false, "102 ": false,
	} {
		number, first, _ := strings.Cut(call, " ")
		n, err := strconv.Atoi(number)
		if got := givesFile(n, first); err != nil || got != want {
			t.Errorf("%q: %t, %v", call, got, err)
		}
	}
}

// leastOf is how many bytes a directory has at least that has had many entries, where its file system tells.
func leastOf(t *testing.T, dir string) int64 {
	t.Helper()
	var on unix.Statfs_t
	if err := unix.Statfs(dir, &on); err != nil {
		t.Fatal(err)
	}
	if on.Type == unix.EXT4_SUPER_MAGIC || on.Type == unix.XFS_SUPER_MAGIC {
		return 64 << 10
	}
	return 0
}

// TestNoOtherKindIsKeptSo is of the ways in which the kernel keeps files alone, or directories alone.
// Mounts and rings of io_uring are refused to all sandboxes whose kernel is the host's: see enginetest.DangerousCalls.
func TestNoOtherKindIsKeptSo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(name string, flags int) int {
		fd, err := unix.Open(filepath.Join(dir, name), flags|unix.O_CLOEXEC, 0o700)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "d"), 0o700), os.Symlink("x", filepath.Join(dir, "l")), unix.Mkfifo(filepath.Join(dir, "p"), 0o700)); err != nil {
		t.Fatal(err)
	}
	file, pipe := open("f", unix.O_RDWR|unix.O_CREAT), open("p", unix.O_RDWR)
	for name, fd := range map[string]int{"d": open("d", unix.O_RDONLY), "l": open("l", unix.O_PATH|unix.O_NOFOLLOW), "p": pipe} {
		if _, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED); err == nil {
			t.Errorf("%s is mapped", name)
		}
		if err := unix.Exec(filepath.Join(dir, name), []string{name}, nil); err == nil {
			t.Errorf("%s is run", name)
		}
	}
	if unix.Fchdir(file) == nil || unix.Fchdir(pipe) == nil || unix.Chroot(filepath.Join(dir, "f")) == nil {
		t.Error("something works in what is no directory")
	}
}

// TestWhatHoldsNothing is of what has to do with a file or directory and lets go of it with the last descriptor, name and process: the
// kernel ends a watch when it frees what is watched. In the control a descriptor holds it.
func TestWhatHoldsNothing(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(t *testing.T, path string){
		"a watch":              func(*testing.T, string) {},
		"pages in a pipe":      keepPages,
		"a process that ended": keepEnded,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "d")
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			if name == "pages in a pipe" {
				path = filepath.Join(path, "file")
				if err := os.WriteFile(path, make([]byte, 4096), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(watch)
			if _, err := unix.InotifyAddWatch(watch, path, unix.IN_DELETE_SELF); err != nil {
				t.Fatal(err)
			}
			control, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			hold(t, path)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if isFreed(t, watch) {
				t.Error("it is freed while there is a descriptor")
			}
			control.Close()
			if !isFreed(t, watch) {
				t.Error("it is held")
			}
		})
	}
}

// isFreed tells whether what is watched is gone: the kernel says so before a close of the last descriptor returns.
func isFreed(t *testing.T, watch int) bool {
	t.Helper()
	said := make([]byte, 256)
	n, err := unix.Read(watch, said)
	if errors.Is(err, unix.EAGAIN) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at+unix.SizeofInotifyEvent <= n; at += unix.SizeofInotifyEvent { // none has a name
		if binary.NativeEndian.Uint32(said[at+4:])&unix.IN_IGNORED != 0 {
			return true
		}
	}
	return false
}

// keepPages has a part of a file in a pipe.
func keepPages(t *testing.T, path string) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = out.Close(), in.Close() })
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if n, err := unix.Splice(int(file.Fd()), nil, int(in.Fd()), nil, 4096, 0); n != 4096 || err != nil {
		t.Fatal(n, err)
	}
}

// keepEnded has a descriptor of a process that has worked in a directory and ended.
func keepEnded(t *testing.T, path string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), "true")
	child.Dir = path
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid, err := unix.PidfdOpen(child.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(pid), child.Wait() })
	ended := unix.EINTR
	for errors.Is(ended, unix.EINTR) { // until it has ended, and is not waited for
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(pid), Events: unix.POLLIN}}, -1)
		ended, _ = errors.AsType[unix.Errno](err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// threadsWithTables plays a process that has as many threads, each with a table of descriptors of its own.
func threadsWithTables(t *testing.T, n int) process {
	t.Helper()
	dir := t.TempDir()
	for thread := range n {
		if err := os.Mkdir(filepath.Join(dir, strconv.Itoa(thread+1)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return process{dir: dir, tasks: dir, space: &space{home: "7/work"}}
}

// TestFewTablesAreCompared: a thread's descriptors are compared with those of few others, within what a look may have. Comparing all
// with all grows with the square.
func TestFewTablesAreCompared(t *testing.T) {
	t.Parallel()
	const threads = 400
	p := threadsWithTables(t, threads)
	for name, c := range map[string]struct {
		time time.Duration // that a look may take, in which a comparison takes a millisecond
		most int           // comparisons
	}{"each with few": {time.Hour, threads * mostTables}, "within a look": {100 * time.Millisecond, 100 + 2*mostTables}} {
		u := newUnlinked(hostpath.Spot{}, nil)
		var now time.Duration
		compared := 0
		u.most.time = c.time
		u.clock = func() time.Duration { return now }
		u.same = func(int, int) bool {
			compared++
			now += time.Millisecond
			return false
		}
		u.lookAtProcess(context.Background(), p)
		if compared > c.most || compared < threads/4 {
			t.Errorf("%s: %d are compared", name, compared)
		}
		if within := c.time < time.Hour; u.found["7/work"].unread != within {
			t.Errorf("%s: found is %+v", name, u.found)
		}
	}
}

// TestAProcessThatEndsHidesNoOther: the mounts of a namespace are those that any of its processes shows.
func TestAProcessThatEndsHidesNoOther(t *testing.T) {
	t.Parallel()
	u := newUnlinked(hostpath.Spot{Device: "8:1", Path: "/homes"}, of("7/own"))
	ended, lives := t.TempDir(), t.TempDir()
	line := "42 1 8:1 /homes/7/own/.claude /home/agent/.claude rw - ext4 /dev/sda1 rw\n"
	if err := os.WriteFile(filepath.Join(lives, "mountinfo"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := u.spaceOf("mnt:[1]", ended); s != nil {
		t.Errorf("of one that has ended: %+v", s)
	}
	if s := u.spaceOf("mnt:[1]", lives); s == nil || s.home != "7/own" {
		t.Errorf("of one that lives: %+v", s)
	}
}
