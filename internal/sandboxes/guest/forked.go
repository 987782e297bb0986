package guest

import _ "unsafe" // for go:linkname

// What syscall.ForkExec and syscall.Syscall have of the runtime, which keeps their names and
// types for who forks by himself. Between the first and one of the next two no signal is handled
// and no stack grows.

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// Between these two the thread is in the kernel, for as long as it takes: other threads run Go
// code and collect memory meanwhile. The function that calls both must not return in between,
// and nothing that it calls may grow the stack.

//go:linkname enterSyscall runtime.entersyscall
func enterSyscall()

//go:linkname exitSyscall runtime.exitsyscall
func exitSyscall()
