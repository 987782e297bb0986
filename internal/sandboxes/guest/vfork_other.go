//go:build !amd64 && !arm64

package guest

import "syscall"

const cloneSharesMemory = false

func rawClone(_, _ uintptr) (pid uintptr, errno syscall.Errno) { return 0, syscall.ENOSYS }
