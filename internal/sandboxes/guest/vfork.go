package guest

import (
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// startGrace is how long a start is waited for before it counts as held up. Nothing else is
	// started meanwhile.
	startGrace = 20 * time.Millisecond
	// sharedStarts is how many starts at a time may share the agent's memory. Each has a thread of
	// the agent stand still, of which a sandbox may run out.
	sharedStarts = 8
)

// sharing counts the starts whose children have the agent's memory.
var sharing atomic.Int32 //nolint:gochecknoglobals // a thread is the process's, whichever agent it works for

// acquireSharedStart takes one more shared start, if there may be one, which sharedStart.runStart then gives back.
func acquireSharedStart() bool {
	if sharing.Add(1) <= sharedStarts {
		return true
	}
	sharing.Add(-1)
	return false
}

// sharedStart is a start whose child has the agent's memory until its exec. A thread of the
// agent stands still for so long, without the right to run Go code, so that nothing else does.
type sharedStart struct {
	child *child
	pid   int32         // by the kernel, before the child's first instruction
	over  chan struct{} // closed when the child has become its program, or has ended
	errno syscall.Errno // why there is no child; set before over is closed
}

// beginShared begins a child that has the agent's memory until its exec. The caller has
// acquired a shared start.
func (c *child) beginShared() (pid int, told *os.File, err error) {
	s := &sharedStart{child: c, over: make(chan struct{})}
	syscall.ForkLock.Lock()
	go s.runStart()
	over := s.awaitStart(startGrace)
	syscall.ForkLock.Unlock()
	if over {
		pid, err = s.result()
		return pid, nil, err
	}
	pid = int(atomic.LoadInt32(&s.pid))
	told, tell, err := os.Pipe()
	if err != nil {
		return 0, nil, errors.Join(err, unix.Kill(pid, unix.SIGKILL)) // not collected yet: the number is its own
	}
	go s.tellWhenOver(tell)
	return pid, told, nil
}

// runStart makes the child and returns when it has become its program, or has ended.
func (s *sharedStart) runStart() {
	s.errno = s.child.vforkChild(&s.pid)
	sharing.Add(-1)
	close(s.over)
}

// awaitStart waits until the start is over, and gives up after grace. There is a child then, of which
// pid is the number.
func (s *sharedStart) awaitStart(grace time.Duration) (over bool) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for {
		select {
		case <-s.over:
			return true
		case <-timer.C:
		}
		if atomic.LoadInt32(&s.pid) != 0 {
			return false
		}
		timer.Reset(time.Millisecond) // the kernel is still making it, which no process holds up
	}
}

// result is the number of a child that has become its program, or been killed, which its status
// tells; else the kernel's refusal, and the child is collected. Nobody else may collect it.
func (s *sharedStart) result() (pid int, err error) {
	pid = int(atomic.LoadInt32(&s.pid))
	switch {
	case s.errno != 0:
		return 0, s.errno
	case s.child.failure == 0:
		return pid, nil
	}
	for {
		_, err := unix.Wait4(pid, nil, 0, nil) // it is past its last instruction
		if !errors.Is(err, unix.EINTR) {
			return 0, s.child.failure
		}
	}
}

// tellWhenOver writes to a pipe what a child with a memory of its own would, and closes it.
func (s *sharedStart) tellWhenOver(tell *os.File) {
	<-s.over
	if failure := s.child.failure; failure != 0 {
		_, _ = tell.Write(unsafe.Slice((*byte)(unsafe.Pointer(&failure)), unsafe.Sizeof(failure))) //nolint:gosec // began reads it as such; nobody may read any more
	}
	_ = tell.Close() // nothing is buffered
}

// vforkChild makes a child with the agent's memory and returns when it has become its program, or has
// ended; the error is why there is no child. Goroutines run and memory is collected meanwhile,
// but syscall.AllThreadsSyscall would wait for this thread.
//
//go:norace
//go:nosplit
//go:noinline
func (c *child) vforkChild(pid *int32) syscall.Errno {
	enterSyscall()
	beforeFork()
	errno := c.cloneShared(pid)
	afterFork()
	exitSyscall()
	return errno
}

// cloneShared returns in the parent only, at once and without a look at what is on its stack
// frame, which the child has used.
//
//go:norace
//go:nosplit
//go:noinline
//go:nocheckptr
func (c *child) cloneShared(pid *int32) syscall.Errno {
	const flags = unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_PARENT_SETTID | uintptr(unix.SIGCHLD)
	made, errno := rawClone(flags, uintptr(unsafe.Pointer(pid))) //nolint:gosec // the call takes a pointer
	if made != 0 || errno != 0 {
		return errno
	}
	c.become()
	return 0 // never
}

// mayShareMemory tells whether nobody in the sandbox can see into a child that has the agent's
// memory and its user's ids: the agent forbade it, and a change of ids leaves it forbidden unless
// the kernel is set to let everything be looked into.
var mayShareMemory = sync.OnceValue(func() bool { //nolint:gochecknoglobals // a fact of the kernel, found out once
	return cloneSharesMemory && hidesWhatChangedUsers("/proc/sys/fs/suid_dumpable")
})

// hidesWhatChangedUsers reads the kernel's setting of that. A kernel in user space has none, and
// hides it.
func hidesWhatChangedUsers(setting string) bool {
	value, err := os.ReadFile(setting)
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	return err == nil && strings.TrimSpace(string(value)) != "1"
}
