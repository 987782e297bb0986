// Package agenthometest is a test fixture: processes as sandboxes have them, in mounts of their own, that keep a file of a home
// after its name is gone.
package agenthometest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The ways in which a process keeps a file.
const (
	Named    = "named" // the control: its name stays
	Open     = "open"
	InThread = "in a thread" // whose descriptors are its own
	Mapped   = "mapped"      // and closed
	Sent     = "sent"        // in a message that nobody receives
	SentSent = "sent within what is sent"
	Program  = "program" // that it runs
	Crowd    = "crowd"   // no file, but 200 processes
	Many     = "many"    // open, with ManyOpen other descriptors
	Long     = "long"    // open, and its path was longer than links of /proc are

	FirstEnded       = "first ended" // open, and the process's first thread has ended
	FirstEndedMapped = "first ended, mapped"
	Elsewhere        = "elsewhere"       // open in another process, whose mounts do not show the home, behind ManyOpen descriptors
	Listening        = "sent, and locks" // sent to a socket on which there are locks

	Unaccepted = "sent, and not accepted" // over a connection that nobody has accepted, whose other end is closed

	WorksIn       = "works in"              // a directory, as its own
	WorksInThread = "works in, in a thread" // that shares neither that nor its descriptors
	RootInThread  = "root, in a thread"     // is a directory
	Copies        = "copies"                // closed while a call that waits copies it
	Waits         = "waits"                 // open, and closed where a call waits for a lock on it
	Polled        = "sent, and polled"      // to a socket that is closed while a call polls it
	Asked         = "sent, and asked"       // to a socket that is closed, about which the kernel was asked to tell something
	Sending       = "sending"               // closed while a call waits to send it
	Connects      = "connects"              // no file, but a connection to the socket Service in the home
)

// The kinds of what is kept; anything else is a file.
const (
	Directory = "directory" // which had many entries
	Link      = "link"
	Fifo      = "fifo"
)

// Of is a way in which something of a kind is kept.
func Of(kind, way string) string { return way + kindMark + kind }

const kindMark = " of a "

// Service is the name of a socket in a home.
const Service = "service"

// Play plays the process that Start starts, and ends with it. For TestMain, before all else.
func Play() {
	var err error
	switch {
	case len(os.Args) == 5 && os.Args[1] == "hold":
		err = holdFile(os.Args[2], os.Args[3], os.Args[4])
	case len(os.Args) == 3 && os.Args[1] == "hold-elsewhere":
		if err = errors.Join(unix.Unmount(os.Args[2], unix.MNT_DETACH), keepBehind()); err == nil {
			err = stayUntilDone()
		}
	case len(os.Args) == 3 && os.Args[1] == "hold-as":
		if err = os.Remove(os.Args[2]); err == nil {
			err = stayUntilDone()
		}
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// stayUntilDone says that all is done, and returns when the test is through.
func stayUntilDone() error {
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// Start starts a process that shows itself the place of a home at a directory of its own, and keeps a file of it in one way until the
// test is over. It returns when the file's name is gone.
func Start(tb testing.TB, way, place string) (pid int) {
	tb.Helper()
	child := exec.CommandContext(tb.Context(), os.Args[0], "hold", way, place, tb.TempDir())
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		child.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		child.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	var said strings.Builder
	child.Stderr = &said
	in, err := child.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = in.Close()
		_ = child.Wait()
	})
	if word, err := bufio.NewReader(out).ReadString('\n'); word != "ready\n" {
		_ = child.Wait()
		tb.Fatalf("the child is not ready: %v %s", err, &said)
	}
	return child.Process.Pid
}

// Held is how many bytes the file has.
const Held = 1 << 20

// holdFile plays a sandbox's process: in mounts of its own it shows itself a place of a home, and keeps a file of it in one way
// until its input ends.
func holdFile(way, place, at string) error {
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount(place, at, "", unix.MS_BIND, "")); err != nil {
		return err
	}
	if way == Crowd {
		return crowdMounts()
	}
	if way == Program {
		return become(filepath.Join(at, "program"))
	}
	if way == Connects {
		_, err := net.Dial("unix", filepath.Join(at, Service)) //nolint:noctx,gosec // it goes with the process, whose arguments are a test's
		return errors.Join(err, stayUntilDone())
	}
	if way == Elsewhere {
		return elsewhere(at)
	}
	var err error
	keep := make(chan error, 1)
	go func() { keep <- keepThing(way, filepath.Join(at, "file")) }()
	if err := <-keep; err != nil {
		return err
	}
	if way == FirstEnded || way == FirstEndedMapped {
		done := make(chan struct{})
		go endFirst(done)
		<-done
		for first := "/proc/self/ns/mnt"; err == nil; _, err = os.Readlink(first) { // until it has ended
			runtime.Gosched()
		}
	}
	return stayUntilDone()
}

// become goes on as a copy of this program, which takes its own name away.
func become(path string) error {
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(path, program, 0o700) //nolint:gosec // it is run
	}
	if err != nil {
		return err
	}
	return unix.Exec(path, []string{path, "hold-as", path}, nil)
}

// keepThing makes something and takes its name away.
func keepThing(way, path string) error {
	way, kind, _ := strings.Cut(way, kindMark)
	if way == InThread || way == WorksInThread || way == RootInThread {
		done := make(chan error, 1)
		go inThread(way, kind, path, done)
		return <-done
	}
	if way == Long {
		return keepLong(filepath.Dir(path))
	}
	fd, err := makeThing(kind, path)
	if err != nil || way == Named {
		return err
	}
	return errors.Join(keepFD(way, fd, path), os.Remove(path))
}

// keepFD keeps what a descriptor is of.
func keepFD(way string, fd int, path string) error {
	switch way {
	case Many:
		return openMany()
	case Mapped, FirstEndedMapped:
		_, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
		return errors.Join(err, unix.Close(fd))
	case WorksIn:
		return errors.Join(unix.Fchdir(fd), unix.Close(fd))
	case Copies:
		return keepCopying(fd)
	case Sending:
		return keepSending(fd)
	case Unaccepted:
		return keepUnaccepted(fd)
	case Waits:
		return keepWaiting(fd, path)
	case Sent, Listening, SentSent, Polled, Asked:
		return keepSent(way, fd)
	}
	return nil
}

// keepSent keeps it in a message.
func keepSent(way string, fd int) error {
	sender, receiver, err := sendFD(fd)
	if err != nil {
		return err
	}
	switch way {
	case Polled:
		return closeInCall(receiver, unix.SYS_PPOLL, func() {
			_, _ = unix.Ppoll([]unix.PollFd{{Fd: int32(receiver), Events: unix.POLLPRI}}, nil, nil) // no signal comes to a thread in a call
		})
	case Asked:
		return errors.Join(askAbout(receiver), unix.Close(receiver))
	case Listening:
		err = lockParts(receiver)
	case SentSent:
		_, _, err = sendFD(receiver)
	}
	return errors.Join(err, unix.Close(sender))
}

func openMany() error {
	for range ManyOpen {
		if _, err := unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil {
			return err
		}
	}
	return nil
}

// inThread does it in a thread that is not the process's first and has its own descriptors, and stays.
func inThread(way, kind, path string, done chan<- error) {
	runtime.LockOSThread() // for ever
	if unix.Gettid() == os.Getpid() {
		go inThread(way, kind, path, done) // in another one, as this is taken
		select {}
	}
	err := unix.Unshare(unix.CLONE_FILES | unix.CLONE_FS)
	fd := 0
	if err == nil {
		fd, err = makeThing(kind, path)
	}
	err = errors.Join(err, os.Remove(path))
	switch way {
	case WorksInThread:
		err = errors.Join(err, unix.Fchdir(fd), unix.Close(fd))
	case RootInThread:
		outside, failed := unix.Open("/", unix.O_PATH, 0)
		err = errors.Join(err, failed, unix.Fchdir(fd), unix.Close(fd), unix.Chroot("."), unix.Fchdir(outside))
	}
	done <- err
	select {}
}

// endFirst ends the process's first thread alone.
func endFirst(done chan<- struct{}) {
	runtime.LockOSThread() // for ever
	if unix.Gettid() != os.Getpid() {
		go endFirst(done) // in another one, as this is taken
		select {}
	}
	close(done)
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
}

// elsewhere hands a file to a process whose mounts are its own, and show the home no more.
func elsewhere(at string) error {
	fd, err := makeThing("", filepath.Join(at, "file"))
	if err != nil {
		return err
	}
	unix.CloseOnExec(fd)
	dir, err := os.Open(at)
	if err != nil {
		return err
	}
	other := exec.CommandContext(context.Background(), "/proc/self/exe", "hold-elsewhere", at)
	other.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	other.Stdin, other.Stdout, other.Stderr = os.Stdin, os.Stdout, os.Stderr
	other.ExtraFiles = []*os.File{dir, os.NewFile(uintptr(fd), "file")}
	if err := errors.Join(os.Remove(filepath.Join(at, "file")), other.Start(), other.ExtraFiles[1].Close()); err != nil {
		return err
	}
	return other.Wait()
}

// keepBehind keeps the file that elsewhere has handed over behind many other descriptors.
func keepBehind() error {
	const handed = 4
	if err := openMany(); err != nil {
		return err
	}
	_, err := unix.Dup(handed)
	return errors.Join(err, unix.Close(handed))
}

// ManyOpen is how many descriptors are many.
const ManyOpen = 2000

// keepLong keeps a file open that lay so deep that no link of /proc has its path.
func keepLong(dir string) error {
	at, err := unix.Open(dir, unix.O_PATH, 0)
	name := strings.Repeat("d", 250)
	for range 20 {
		if err == nil {
			err = unix.Mkdirat(at, name, 0o700)
		}
		if err == nil {
			at, err = unix.Openat(at, name, unix.O_PATH, 0)
		}
	}
	if err != nil {
		return err
	}
	fd, err := unix.Openat(at, "file", unix.O_RDWR|unix.O_CREAT, 0o600)
	if err == nil {
		_, err = unix.Write(fd, make([]byte, Held))
	}
	return errors.Join(err, unix.Unlinkat(at, "file", 0))
}

// lockParts locks so many parts of what a descriptor is of that its fdinfo is long.
func lockParts(fd int) error {
	for n := range int64(100) {
		if err := unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Start: 2 * n, Len: 1}); err != nil {
			return err
		}
	}
	return nil
}

// crowdMounts has many processes live in the mounts of this one.
func crowdMounts() error {
	for range 199 {
		sleep := exec.CommandContext(context.Background(), "sleep", "1000")
		if err := sleep.Start(); err != nil {
			return err
		}
		defer sleep.Process.Kill() //nolint:errcheck // it ends with this process's group otherwise
	}
	return stayUntilDone()
}
