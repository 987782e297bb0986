package probe

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// spare is how many processes beyond the limit are tried.
const spare = 8

// computing is how long the threads of a task compute: some periods of the kernel's count.
const computing = 500 * time.Millisecond

// compute keeps so many threads busy. It has nothing to say: how much they came to only
// the host knows.
func compute(task Task) {
	runtime.GOMAXPROCS(task.Threads + 1)
	var over atomic.Bool
	var steps atomic.Uint64 // nobody asks for them
	var all sync.WaitGroup
	for range task.Threads {
		safego.In(&all, func() {
			own := uint64(0)
			for !over.Load() {
				own++
			}
			steps.Add(own)
		})
	}
	time.Sleep(computing)
	over.Store(true)
	all.Wait()
}

// processes makes children that do nothing until it may not any more.
func processes(task Task, say teller) {
	runtime.LockOSThread()
	var made []int
	defer func() {
		for _, pid := range made {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, 0, nil)
		}
	}()
	for len(made) < task.Pids+spare {
		pid, errno := forkIdle()
		if errno != 0 {
			if len(made) > task.Pids {
				say.tellGot(ProcessLimit, "%d processes were made, and %d is the limit", len(made), task.Pids)
				return
			}
			say.tellRefused(ProcessLimit, "%d processes beside those that ran, of %d, then: %v", len(made), task.Pids, errno)
			return
		}
		made = append(made, pid)
	}
	say.tellGot(ProcessLimit, "%d processes were made, and %d is the limit", len(made), task.Pids)
}

// forkIdle makes a child that waits for ever. The child has this thread alone and none of the
// runtime's others, so it does nothing but that.
//
//go:norace
//go:nosplit
func forkIdle() (pid int, errno unix.Errno) {
	made, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	if made == 0 {
		for {
			_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	return int(made), 0
}
