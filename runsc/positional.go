package main

import (
	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/errors/linuxerr"
	"gvisor.dev/gvisor/pkg/sentry/arch"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	syscalls "gvisor.dev/gvisor/pkg/sentry/syscalls/linux"
)

// mendPositional has reads and writes at an offset say ESPIPE of what has no offsets, as
// Linux does; gVisor says EINVAL of terminals. Programs written in Zig try a write at an
// offset first, go on without one after ESPIPE, and take all else for the end: those that
// draw with OpenTUI, as opencode does, leave the screen blank.
func mendPositional() {
	for _, table := range []*kernel.SyscallTable{syscalls.AMD64, syscalls.ARM64} {
		for number, call := range table.Table {
			switch call.Name {
			case "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2":
				call.Fn = positional(call.Fn)
				table.Table[number] = call
			}
		}
		table.Init() // again: what is called is kept beside the table
	}
}

// positional is a system call whose first argument is a file and whose fourth is an offset.
func positional(call kernel.SyscallFn) kernel.SyscallFn {
	return func(t *kernel.Task, number uintptr, args arch.SyscallArguments) (uintptr, *kernel.SyscallControl, error) {
		n, control, err := call(t, number, args)
		if linuxerr.Equals(linuxerr.EINVAL, err) && args[3].Int64() >= 0 && !seekable(t, args[0].Int()) {
			err = linuxerr.ESPIPE
		}
		return n, control, err
	}
}

// seekable is true of what is no open file, too: nothing is to be said of that.
func seekable(t *kernel.Task, fd int32) bool {
	file := t.GetFile(fd)
	if file == nil {
		return true
	}
	defer file.DecRef(t)
	_, err := file.Seek(t, 0, linux.SEEK_CUR)
	return !linuxerr.Equals(linuxerr.ESPIPE, err)
}
