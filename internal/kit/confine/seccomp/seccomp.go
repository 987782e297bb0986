// Package seccomp has a process give up system calls for good: those that make or
// connect sockets, run programs, reach into other processes or signal them, change whose a
// file is and who may use it by its path, make namespaces and mounts, and change the
// kernel. It is for processes that got all that they need before. A program that is about to
// be started, and all that runs on a kernel of a sandbox's own, have filters that take less.
//
// A refused call fails, so that a mistake of ours is an error and no death. A call of another
// architecture ends the process, except in a sandbox. The filter is a list of what is refused,
// not of what is allowed: the Go runtime's own calls change with its releases.
package seccomp

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// ErrMissing says that this kernel has no filters.
var ErrMissing = errors.New("this kernel has no filters for system calls (CONFIG_SECCOMP_FILTER)")

// Offsets into what a filter sees, struct seccomp_data.
const (
	offCall  = 0
	offArch  = 4
	offFirst = 16 // the lower half of the first argument
)

// x32 is the bit of calls with another numbering on amd64.
const x32 = 0x40000000

// namespaces are the flags of clone that make one.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// sockets are the calls that make connections.
func sockets() []uint32 {
	return []uint32{unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND}
}

// refusedCalls are the calls that always fail.
func refusedCalls() []uint32 {
	return []uint32{
		unix.SYS_SOCKETPAIR, unix.SYS_LISTEN,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, // they connect, too
		unix.SYS_EXECVE, unix.SYS_EXECVEAT,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL,
		unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_TRUNCATE, // by path, where Landlock has no say
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOUNT_SETATTR,
		unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_PERSONALITY, unix.SYS_QUOTACTL,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	}
}

func errnoInstruction(e unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(e)}
}

func allowed() bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW} }

// killInstruction returns what becomes of a process that makes a call of another architecture.
func killInstruction() bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS} }

// prologue is the begin of each filter, in the kernel's own machine language: what is said of
// calls of another architecture, those of another numbering, and those that always fail.
func prologue(arch uint32, another bpf.Instruction, refusal unix.Errno, calls []uint32) []bpf.Instruction {
	all := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		another,
		bpf.LoadAbsolute{Off: offCall, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32, SkipTrue: 1},
		errnoInstruction(unix.ENOSYS),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1}, // its flags lie where no filter sees them
		errnoInstruction(unix.ENOSYS),
	}
	for _, call := range calls {
		all = append(all, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1}, errnoInstruction(refusal))
	}
	return all
}

// program is the filter of the process pid.
func program(arch uint32, pid int, calls []uint32) []bpf.Instruction {
	return append(
		prologue(arch, killInstruction(), unix.EACCES, calls),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE, SkipTrue: 4},
		bpf.LoadAbsolute{Off: offFirst, Size: 4}, // the flags
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaces, SkipTrue: 1},
		errnoInstruction(unix.EACCES),
		allowed(),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_TGKILL, SkipTrue: 4}, // the runtime signals its own threads
		bpf.LoadAbsolute{Off: offFirst, Size: 4},                              // whose thread
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(pid), SkipTrue: 1},
		errnoInstruction(unix.EACCES),
		allowed(),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SOCKET, SkipTrue: 4}, // of those that keep it
		bpf.LoadAbsolute{Off: offFirst, Size: 4},                              // the family
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1},
		errnoInstruction(unix.EACCES),
		allowed(),
	)
}

func architecture() (uint32, error) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, nil
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, nil
	}
	return 0, fmt.Errorf("no filter is known for %s", runtime.GOARCH)
}

// Available is nil if this kernel has filters, and ErrMissing if it has none. It asks
// the kernel for one at an address at which nothing lies: who has filters looks there.
func Available() error {
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, 0)
	if errno == unix.EFAULT {
		return nil
	}
	if errno == unix.ENOSYS || errno == unix.EINVAL && !hasModes() {
		return ErrMissing
	}
	return fmt.Errorf("ask the kernel for filters of system calls: %w", errno)
}

// hasModes tells whether this kernel has modes of system calls at all (CONFIG_SECCOMP). One that
// has, and that finds the question for filters invalid, has them in another form than is known
// here: nothing says that it has none.
func hasModes() bool {
	_, _, errno := unix.Syscall(unix.SYS_PRCTL, unix.PR_GET_SECCOMP, 0, 0)
	return errno == 0
}

// Enter gives the calls up, on all threads and in all that they start. The process must
// have no_new_privs. ErrMissing where the kernel has no filters: nothing was given up.
func Enter() error { return enterFilter(slices.Concat(sockets(), refusedCalls(), olderCalls())) }

// EnterWithSockets does what Enter does, for a program that connects over IP: it keeps the calls for that, and makes
// no socket of another kind, so none that leads to a program of this host by its path.
func EnterWithSockets() error { return enterFilter(slices.Concat(refusedCalls(), olderCalls())) }

func enterFilter(calls []uint32) error {
	if err := Available(); err != nil {
		return err
	}
	arch, err := architecture()
	if err != nil {
		return err
	}
	return applyFilter(program(arch, os.Getpid(), calls), unix.SECCOMP_FILTER_FLAG_TSYNC)
}

// applyFilter puts the calling thread under a filter, or all threads.
func applyFilter(program []bpf.Instruction, flags uintptr) error {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, 0, len(raw))
	for _, i := range raw {
		filter = append(filter, unix.SockFilter{Code: i.Op, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	p := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&p))) //nolint:gosec // the call takes a pointer
	runtime.KeepAlive(filter)
	switch {
	case errno != 0:
		return fmt.Errorf("give up system calls: %w", errno)
	case thread != 0:
		return fmt.Errorf("give up system calls: thread %d has another filter", thread)
	}
	return nil
}
