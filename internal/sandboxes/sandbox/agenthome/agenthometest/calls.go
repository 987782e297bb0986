package agenthometest

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/filelock"
)

// makeThing makes something of a kind, and opens it.
func makeThing(kind, path string) (fd int, err error) {
	switch kind {
	case Directory:
		if err := makeGrown(path); err != nil {
			return 0, err
		}
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	case Link:
		if err := os.Symlink("/"+strings.Repeat("a", 200), path); err != nil { // so long that it has a block
			return 0, err
		}
		return unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW, 0)
	case Fifo:
		if err := unix.Mkfifo(path, 0o600); err != nil {
			return 0, err
		}
		return unix.Open(path, unix.O_RDWR, 0)
	}
	if fd, err = unix.Open(path, unix.O_RDWR|unix.O_CREAT, 0o600); err == nil {
		_, err = unix.Write(fd, make([]byte, Held))
	}
	return fd, err
}

// makeGrown makes a directory that has had many entries, and has none.
func makeGrown(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	for n := range 500 {
		name := filepath.Join(path, strings.Repeat("n", 200)+strconv.Itoa(n))
		if err := os.Symlink("x", name); err != nil {
			return err
		}
	}
	for n := range 500 {
		if err := os.Remove(filepath.Join(path, strings.Repeat("n", 200)+strconv.Itoa(n))); err != nil {
			return err
		}
	}
	return nil
}

// sendFD puts a descriptor into a message that nobody receives, and closes it.
func sendFD(fd int) (sender, receiver int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, 0, err
	}
	err = unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0)
	return pair[0], pair[1], errors.Join(err, unix.Close(fd))
}

// keepUnaccepted sends a descriptor to a socket that listens, and closes all else.
func keepUnaccepted(fd int) error {
	listener, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	client, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	at := &unix.SockaddrUnix{Name: "@unaccepted" + strconv.Itoa(os.Getpid())}
	if err := errors.Join(unix.Bind(listener, at), unix.Listen(listener, 1), unix.Connect(client, at)); err != nil {
		return err
	}
	return errors.Join(unix.Sendmsg(client, []byte("x"), unix.UnixRights(fd), nil, 0), unix.Close(fd), unix.Close(client))
}

// closeInCall closes a descriptor while a thread is in a system call with it that never returns.
func closeInCall(fd, call int, do func()) error {
	thread := make(chan int)
	go func() {
		runtime.LockOSThread() // for ever, so that the thread ends with it
		thread <- unix.Gettid()
		do()
	}()
	at, want := filepath.Join("/proc/self/task", strconv.Itoa(<-thread), "syscall"), strconv.Itoa(call)+" "
	for {
		said, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		if strings.HasPrefix(string(said), want) {
			return unix.Close(fd)
		}
		if _, err := os.Stat(filepath.Dir(at)); err != nil {
			return errors.New("the call has ended")
		}
		runtime.Gosched()
	}
}

// keepCopying has a file copied into a pipe that nobody reads.
func keepCopying(fd int) error {
	pipe := make([]int, 2)
	if err := errors.Join(unix.Pipe(pipe), rewind(fd)); err != nil {
		return err
	}
	return closeInCall(fd, unix.SYS_SENDFILE, func() {
		for { // one call fills the pipe, and the next one waits
			if _, err := unix.Sendfile(pipe[1], fd, nil, Held); err != nil {
				return
			}
		}
	})
}

// keepSending has a message sent with it to a socket whose queue is full.
func keepSending(fd int) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	for err == nil {
		err = unix.Sendmsg(pair[0], make([]byte, 4096), nil, nil, unix.MSG_DONTWAIT)
	}
	if !errors.Is(err, unix.EAGAIN) {
		return err
	}
	return closeInCall(fd, unix.SYS_SENDMSG, func() {
		_ = unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0)
	})
}

func rewind(fd int) error {
	_, err := unix.Seek(fd, 0, unix.SEEK_SET)
	return err
}

// keepWaiting waits for a lock that another descriptor of the same has.
func keepWaiting(fd int, path string) error {
	other, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	lock, err := filelock.Of(other)
	if err != nil {
		return err
	}
	return closeInCall(fd, unix.SYS_FLOCK, func() {
		_, _, _ = unix.Syscall(unix.SYS_FLOCK, uintptr(fd), unix.LOCK_EX, 0)
		runtime.KeepAlive(lock) // a file that nobody refers to is closed
	})
}

// askAbout asks the kernel to tell when there is something of a socket that there never will be.
func askAbout(fd int) error {
	var queue uintptr
	if _, _, failed := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&queue)), 0); failed != 0 { //nolint:gosec // the call takes a pointer
		return failed
	}
	const poll = 5 // IOCB_CMD_POLL
	ask := make([]byte, 64)
	binary.NativeEndian.PutUint16(ask[16:], poll)
	binary.NativeEndian.PutUint32(ask[20:], uint32(fd))
	binary.NativeEndian.PutUint64(ask[24:], unix.POLLPRI)
	asks := []unsafe.Pointer{unsafe.Pointer(&ask[0])}                                                               //nolint:gosec // as above
	if _, _, failed := unix.Syscall(unix.SYS_IO_SUBMIT, queue, 1, uintptr(unsafe.Pointer(&asks[0]))); failed != 0 { //nolint:gosec // as above
		return failed
	}
	return nil
}
