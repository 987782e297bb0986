package guest

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// program is what a child becomes.
type program struct {
	file      string
	argv, env []string
	dir       string
	files     [3]*os.File
	terminal  bool // the first of them becomes its controlling terminal
	uid, gid  int
	groups    bool // it loses the supplementary groups, which takes a right
	// processes is how many its user may have; 0: as many as the agent may. What is more than
	// the agent may takes CAP_SYS_RESOURCE.
	processes uint64
}

// child is a program laid out for a child, which may not allocate.
type child struct {
	file, dir *byte
	argv, env []*byte
	fds       [3]int
	told      int // the pipe's end
	terminal  bool
	uid, gid  int
	groups    bool
	raised    *unix.Rlimit // nil: as it is
	processes *unix.Rlimit // nil: as it is
	failure   syscall.Errno
}

// begin forks a child that becomes the program in a session of its own, without waiting for
// it: between its fork and its exec, processes of its user can stop it, and the owner of the
// program's file can have the kernel wait for him. It is told of by told, which the caller
// closes.
//
// syscall.ForkExec is not used because its child has the agent's memory: the agent's thread
// stands still in the kernel until the exec, with the right to run Go code, and where that is
// the only one, or memory is collected meanwhile, so does the whole agent.
func (p *program) begin() (pid int, told *os.File, err error) {
	c, err := p.lay()
	if err != nil {
		return 0, nil, err
	}
	told, tell, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer tell.Close()
	c.told = int(tell.Fd())
	for i, file := range p.files {
		c.fds[i] = int(file.Fd())
		if c.fds[i] >= len(c.fds) {
			continue
		}
		// Out of the way of those that it gets.
		if c.fds[i], err = unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, len(c.fds)); err != nil {
			return 0, nil, errors.Join(err, told.Close())
		}
		defer unix.Close(c.fds[i]) //nolint:errcheck // another descriptor of what the caller has
	}
	syscall.ForkLock.Lock()
	pid, errno := c.fork()
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return 0, nil, errors.Join(errno, told.Close())
	}
	return pid, told, nil
}

// beginAlone is begin where nothing in the sandbox can hold a child up. It costs least, most of
// all with a kernel in user space: the child has the agent's memory until its exec, which has
// happened when it returns, so that there is nothing to be told. It knows no limit of processes.
func (p *program) beginAlone() (pid int, told *os.File, err error) {
	pid, err = syscall.ForkExec(p.file, p.argv, &syscall.ProcAttr{
		Dir: p.dir, Env: p.env, Files: []uintptr{p.files[0].Fd(), p.files[1].Fd(), p.files[2].Fd()},
		Sys: &syscall.SysProcAttr{
			Setsid: true, Setctty: p.terminal, // descriptor 0
			Credential: &syscall.Credential{Uid: uint32(p.uid), Gid: uint32(p.gid), NoSetGroups: !p.groups},
		},
	})
	return pid, nil, err
}

// alone tells whether the agent is all that runs in its sandbox. Needs reaper.mu, for that to
// stay so: without it nothing is started.
func alone() bool {
	if os.Getpid() != 1 {
		return false
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	processes := 0
	for _, name := range names {
		if name[0] >= '0' && name[0] <= '9' {
			processes++
		}
	}
	return err == nil && processes == 1
}

func (p *program) lay() (*child, error) {
	c := &child{terminal: p.terminal, uid: p.uid, gid: p.gid, groups: p.groups}
	var err error
	if c.file, err = syscall.BytePtrFromString(p.file); err != nil {
		return nil, err
	}
	if c.dir, err = syscall.BytePtrFromString(p.dir); err != nil {
		return nil, err
	}
	if c.argv, err = syscall.SlicePtrFromStrings(p.argv); err != nil {
		return nil, err
	}
	if c.env, err = syscall.SlicePtrFromStrings(p.env); err != nil {
		return nil, err
	}
	if p.processes == 0 {
		return c, nil
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		return nil, fmt.Errorf("read the limit of processes: %w", err)
	}
	if own.Max < p.processes {
		c.raised = &unix.Rlimit{Cur: own.Cur, Max: p.processes}
	}
	c.processes = &unix.Rlimit{Cur: p.processes, Max: p.processes}
	return c, nil
}

// fork makes the child, which becomes the program or tells why not. From the fork on it neither
// allocates nor calls what may grow the stack: of the threads that would have to help, the
// child has none.
//
//go:norace
//go:noinline
//go:nocheckptr
func (c *child) fork() (int, syscall.Errno) {
	beforeFork()
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		afterFork()
		return int(pid), errno
	}
	if c.calls(unix.SYS_SETSID, 0, 0, 0) {
		afterForkInChild()
		if c.becomesUser() && c.takesPlace() {
			c.calls(unix.SYS_EXECVE, uintptr(unsafe.Pointer(c.file)), uintptr(unsafe.Pointer(&c.argv[0])), uintptr(unsafe.Pointer(&c.env[0]))) //nolint:gosec // the call takes a pointer
		}
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, uintptr(c.told), uintptr(unsafe.Pointer(&c.failure)), unsafe.Sizeof(c.failure)) //nolint:gosec // the call takes a pointer
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, codeNotBegun, 0, 0)
	}
}

// becomesUser gives the child the user's rights and limits. The limit of processes is set last:
// the user may have more already, and could start nothing by which he has fewer.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (c *child) becomesUser() bool {
	return (c.raised == nil || c.limits(uintptr(unsafe.Pointer(c.raised)))) && //nolint:gosec // the call takes a pointer
		(!c.groups || c.calls(unix.SYS_SETGROUPS, 0, 0, 0)) &&
		c.calls(unix.SYS_SETGID, uintptr(c.gid), 0, 0) &&
		c.calls(unix.SYS_SETUID, uintptr(c.uid), 0, 0) &&
		(c.processes == nil || c.limits(uintptr(unsafe.Pointer(c.processes)))) //nolint:gosec // the call takes a pointer
}

// takesPlace gives the child its directory, its descriptors and its terminal.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (c *child) takesPlace() bool {
	if !c.calls(unix.SYS_CHDIR, uintptr(unsafe.Pointer(c.dir)), 0, 0) { //nolint:gosec // the call takes a pointer
		return false
	}
	for i := range len(c.fds) {
		if !c.calls(unix.SYS_DUP3, uintptr(c.fds[i]), uintptr(i), 0) {
			return false
		}
	}
	return !c.terminal || c.calls(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 1)
}

// calls makes a system call, and keeps why it failed.
//
//go:norace
//go:nosplit
func (c *child) calls(trap, first, second, third uintptr) bool {
	_, _, c.failure = syscall.RawSyscall(trap, first, second, third)
	return c.failure == 0
}

// limits sets the child's limit of processes.
//
//go:norace
//go:nosplit
func (c *child) limits(limit uintptr) bool {
	_, _, c.failure = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NPROC, limit, 0, 0, 0)
	return c.failure == 0
}

// codeNotBegun is the exit code of a child that became no program.
const codeNotBegun = 253

// began waits until a child has become its program, or has been killed, which its status
// tells; the error is the kernel's refusal, or os.ErrDeadlineExceeded.
func began(told *os.File, within time.Duration) error {
	var failure syscall.Errno
	if err := told.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	n, err := told.Read(unsafe.Slice((*byte)(unsafe.Pointer(&failure)), unsafe.Sizeof(failure))) //nolint:gosec // what the child wrote as such
	switch {
	case n == int(unsafe.Sizeof(failure)):
		return failure
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err
	default:
		return nil // its end was closed by the exec, or by its death
	}
}
