package seccomp

import (
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// kernels are the calls of those who look after a kernel, and parts of it that next to no
// program uses and in which flaws are found again and again.
func kernels() []uint32 {
	return slices.Concat(ofThisKind(), []uint32{
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_USERFAULTFD,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOUNT_SETATTR,
		unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	})
}

// families are the kinds of sockets that programs in a sandbox have.
func families() []uint32 {
	return []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
}

// inside is the filter of all that runs on a kernel of the sandbox's own. A call that it refuses
// fails as without rights; programs of another architecture find no system call at all.
func inside(arch uint32) []bpf.Instruction {
	all := prologue(arch, errnoInstruction(unix.ENOSYS), unix.EPERM, kernels())
	all = append(
		all,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE, SkipTrue: 4},
		bpf.LoadAbsolute{Off: offFirst, Size: 4}, // the flags
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaces, SkipTrue: 1},
		errnoInstruction(unix.EPERM),
		allowed(),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipTrue: 1},
		allowed(),
		bpf.LoadAbsolute{Off: offFirst, Size: 4}, // the family
	)
	for _, family := range families() {
		all = append(all, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: family, SkipTrue: 1}, allowed())
	}
	return append(all, errnoInstruction(unix.EPERM))
}

// EnterInside has this thread alone, and what it becomes and starts, give up what leads to
// more of a kernel that is the sandbox's own: who takes that kernel stands before the machine.
// The caller has no_new_privs. ErrMissing where the kernel has no filters: nothing was given
// up.
func EnterInside() error { return onThread(inside) }

// onThread puts the calling thread under a filter.
func onThread(filter func(arch uint32) []bpf.Instruction) error {
	if err := Available(); err != nil {
		return err
	}
	arch, err := architecture()
	if err != nil {
		return err
	}
	return applyFilter(filter(arch), 0)
}
