package sysfilter

import "golang.org/x/sys/unix"

// older are refused calls that newer architectures have in one form only.
func older() []uint32 {
	return []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN}
}
