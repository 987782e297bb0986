package guest

import _ "unsafe" // for go:linkname

// What syscall.ForkExec has of the runtime: no signal is handled and no stack grows between
// the first and one of the others. The runtime keeps their names and types for who forks by
// himself.

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()
