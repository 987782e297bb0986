package seccomp

import "golang.org/x/sys/unix"

// olderCalls are refused calls that newer architectures have in one form only.
func olderCalls() []uint32 {
	return []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN}
}

// ofThisKind are refused calls that only this architecture has.
func ofThisKind() []uint32 {
	return []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS_UPROBE, unix.SYS_URETPROBE}
}
