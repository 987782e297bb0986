package seccomp

import (
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// aloneCalls are the calls that no program needs which works on files that it was given, beside
// nobody: those that reach into other processes or signal them, change whose a file is, make
// namespaces and mounts, and change the kernel or ask for more of it.
func aloneCalls() []uint32 {
	return append(
		slices.Concat(olderCalls(), ofThisKind()),
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_EXECVEAT,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
		unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_KCMP,
		unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOUNT_SETATTR,
		unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT, unix.SYS_MKNODAT, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_LOOKUP_DCOOKIE,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_PERSONALITY, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
		unix.SYS_MEMFD_SECRET, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_REMAP_FILE_PAGES, unix.SYS_SCHED_SETATTR, unix.SYS_LSM_SET_SELF_ATTR,
		unix.SYS_MSGGET, unix.SYS_MSGCTL, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
		unix.SYS_SHMGET, unix.SYS_SHMCTL, unix.SYS_SHMAT, unix.SYS_SHMDT,
		unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK, unix.SYS_MQ_TIMEDSEND, unix.SYS_MQ_TIMEDRECEIVE, unix.SYS_MQ_NOTIFY, unix.SYS_MQ_GETSETATTR,
	)
}

// starter is the filter of a program that is yet to be started: what its start takes, exec
// and to become another user in another root and another namespace of processes, it keeps.
func starter(arch uint32, anySocket bool) []bpf.Instruction {
	all := prologue(arch, killInstruction(), unix.EACCES, aloneCalls())
	all = append(
		all,
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: unix.SYS_FILE_SETATTR, SkipTrue: 1}, // the last that is known here
		errnoInstruction(unix.ENOSYS),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE, SkipTrue: 4},
		bpf.LoadAbsolute{Off: offFirst, Size: 4}, // the flags
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaces &^ unix.CLONE_NEWPID, SkipTrue: 1},
		errnoInstruction(unix.EACCES),
		allowed(),
	)
	if anySocket {
		return append(all, allowed())
	}
	return append(
		all,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SOCKET, SkipTrue: 3},
		bpf.LoadAbsolute{Off: offFirst, Size: 4}, // the family
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 1},
		errnoInstruction(unix.EACCES),
		allowed(),
	)
}

// EnterToStart has this thread alone, and what it starts from now on, give calls up: a
// program that is to work by itself, with sockets of no kind but Unix's unless it has a
// network. The caller keeps the thread to itself and has no_new_privs. ErrMissing where the
// kernel has no filters: nothing was given up.
func EnterToStart(network bool) error {
	return onThread(func(arch uint32) []bpf.Instruction { return starter(arch, network) })
}
