//go:build amd64 || arm64

package guest

import "syscall"

// cloneSharesMemory tells whether there is a rawClone for this processor.
const cloneSharesMemory = true

// rawClone calls clone for a child on the caller's stack. It returns twice where the memory is
// shared, in the child first, so that it keeps where to return to out of the stack.
func rawClone(flags, parentTID uintptr) (pid uintptr, errno syscall.Errno)
