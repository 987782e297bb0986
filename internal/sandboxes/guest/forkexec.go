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
	// processes is how many its user may have; 0: as many as the agent may. More than the agent may have
	// takes CAP_SYS_RESOURCE.
	processes uint64
	// number is the command's, by which all that comes of it is known; 0: none.
	number uint64
}

// child is a program laid out for a child, which may not allocate.
type child struct {
	file, dir *byte
	argv, env []*byte
	fds       [3]int
	tell      int // the end of a pipe for why it failed; noPipe: its memory is the agent's
	terminal  bool
	uid, gid  int
	groups    bool
	hidden    bool         // nobody may look into the agent's memory, and so not into the child's
	raised    *unix.Rlimit // nil: as it is
	processes *unix.Rlimit // nil: as it is
	grown     *unix.Rlimit // with fallen the command's number; nil: as it is
	fallen    *unix.Rlimit
	failure   syscall.Errno
}

// beginChild makes a child that becomes the program in a session of its own. It does not wait for
// one that is held up: between its start and its exec, processes of its user can stop it, and
// the owner of the program's file can have the kernel wait for him. told, which the caller
// closes, is nil where the program has begun already; else began reads from it when it has.
//
// The child shares the agent's memory until its exec, which costs least, as long as few starts
// are held up; beyond that, and where it might be seen into, it gets a copy.
//
// syscall.ForkExec is not used because its thread stands still in the kernel until the exec with
// the right to run Go code. Where that is the only one, or memory is collected meanwhile, so does
// the whole agent.
func (p *program) beginChild() (pid int, told *os.File, err error) {
	c, err := p.layChild()
	if err != nil {
		return 0, nil, err
	}
	for i, file := range p.files {
		c.fds[i] = int(file.Fd())
		if c.fds[i] >= len(c.fds) {
			continue
		}
		// Out of the way of those that it gets.
		if c.fds[i], err = unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, len(c.fds)); err != nil {
			return 0, nil, err
		}
		defer unix.Close(c.fds[i]) //nolint:errcheck // another descriptor of what the caller has
	}
	if mayShareMemory() && acquireSharedStart() {
		return c.beginShared()
	}
	return c.beginApart()
}

// beginApart begins a child with a copy of the agent's memory. It takes no thread of the
// agent, however long the child is held up, but the kernel copies the tables of the memory, and
// the agent's next write to each page.
func (c *child) beginApart() (pid int, told *os.File, err error) {
	told, tell, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer tell.Close()
	c.tell = int(tell.Fd())
	syscall.ForkLock.Lock()
	pid, errno := c.forkChild()
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return 0, nil, errors.Join(errno, told.Close())
	}
	return pid, told, nil
}

func (p *program) layChild() (*child, error) {
	c := &child{tell: noPipe, terminal: p.terminal, uid: p.uid, gid: p.gid, groups: p.groups}
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
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	c.hidden = err != nil || dumpable != 1
	if c.grown, c.fallen, err = numberLimits(p.number); err != nil {
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

// forkChild makes a child with a copy of the agent's memory, which becomes the program or tells why
// not.
//
//go:norace
//go:noinline
//go:nocheckptr
func (c *child) forkChild() (int, syscall.Errno) {
	beforeFork()
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		afterFork()
		return int(pid), errno
	}
	c.become()
	return 0, 0 // never
}

// become is the child's life until its exec. It does not return. It neither allocates nor calls
// what may grow the stack: of the threads that would have to help, the child has none.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (c *child) become() {
	if c.callSystem(unix.SYS_SETSID, 0, 0, 0) && c.becomesUser() && c.hideMemory() {
		afterForkInChild() // until now its user's signals wait
		if c.takesPlace() {
			c.callSystem(unix.SYS_EXECVE, uintptr(unsafe.Pointer(c.file)), uintptr(unsafe.Pointer(&c.argv[0])), uintptr(unsafe.Pointer(&c.env[0]))) //nolint:gosec // the call takes a pointer
		}
	}
	if c.tell != noPipe {
		_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, uintptr(c.tell), uintptr(unsafe.Pointer(&c.failure)), unsafe.Sizeof(c.failure)) //nolint:gosec // the call takes a pointer
	}
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
	c.writeNumber()
	return c.setLimit(unix.RLIMIT_NPROC, c.raised) &&
		(!c.groups || c.callSystem(unix.SYS_SETGROUPS, 0, 0, 0)) &&
		c.callSystem(unix.SYS_SETGID, uintptr(c.gid), 0, 0) &&
		c.callSystem(unix.SYS_SETUID, uintptr(c.uid), 0, 0) &&
		c.setLimit(unix.RLIMIT_NPROC, c.processes)
}

// writeNumber writes the command's number into the child's limits. Where the kernel does not let
// them be set, as older releases of gVisor refuse that of the resident set, the command starts all
// the same: what its limits then leave open is decided as for a process that has lowered them.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (c *child) writeNumber() {
	_ = c.setLimit(unix.RLIMIT_RSS, c.grown) && c.setLimit(unix.RLIMIT_DATA, c.fallen)
	c.failure = 0 // it is no refusal to start
}

// hideMemory forbids anew to look into the memory, and to dump it: where fs.suid_dumpable is 2, as
// collectors of crashes have it, a change of ids allows the kernel to write a core, which its
// user's signals would ask for.
//
//go:norace
//go:nosplit
func (c *child) hideMemory() bool {
	return !c.hidden || c.callSystem(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0)
}

// takesPlace gives the child its directory, its descriptors and its terminal.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (c *child) takesPlace() bool {
	if !c.callSystem(unix.SYS_CHDIR, uintptr(unsafe.Pointer(c.dir)), 0, 0) { //nolint:gosec // the call takes a pointer
		return false
	}
	for i := range len(c.fds) {
		if !c.callSystem(unix.SYS_DUP3, uintptr(c.fds[i]), uintptr(i), 0) {
			return false
		}
	}
	return !c.terminal || c.callSystem(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 1)
}

// callSystem makes a system call, and keeps why it failed.
//
//go:norace
//go:nosplit
func (c *child) callSystem(trap, first, second, third uintptr) bool {
	_, _, c.failure = syscall.RawSyscall(trap, first, second, third)
	return c.failure == 0
}

// setLimit sets a limit of the child; nil leaves it as it is.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (c *child) setLimit(resource uintptr, limit *unix.Rlimit) bool {
	if limit == nil {
		return true
	}
	_, _, c.failure = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, resource, uintptr(unsafe.Pointer(limit)), 0, 0, 0) //nolint:gosec // the call takes a pointer
	return c.failure == 0
}

// codeNotBegun is the exit code of a child that became no program.
const codeNotBegun = 253

// noPipe is in the place of a pipe's descriptor.
const noPipe = -1

// awaitBegun waits until a child has become its program, or has been killed, which its status
// tells; the error is the kernel's refusal, or os.ErrDeadlineExceeded. A nil told is that of a
// child that has.
func awaitBegun(told *os.File, within time.Duration) error {
	if told == nil {
		return nil
	}
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
