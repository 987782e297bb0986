// Command syscalls makes one system call after the other, each in a process of its own,
// with arguments that no call does anything with, and prints what the kernel says: the call
// and ok, the number of an error, the signal that ended the process, or that it is stuck.
//
//	syscalls NUMBER[:ARGUMENT]...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience bounds a call that does not come back.
const patience = 20 * time.Second

// single has a process make one call.
const single = "--one"

func main() {
	if len(os.Args) == 3 && os.Args[1] == single {
		one(os.Args[2])
	}
	for _, call := range os.Args[1:] {
		fmt.Println(call, ask(call))
	}
}

// one makes the call and says how it ended with nothing but two more: of what runs after a
// fork there may be two.
func one(call string) {
	number, argument, given := strings.Cut(call, ":")
	nr, err := strconv.ParseUint(number, 0, 64)
	first := ^uint64(0)
	if given {
		first, err = strconv.ParseUint(argument, 0, 64)
	}
	if err != nil {
		panic(err)
	}
	const nothing = ^uintptr(0)
	_, _, errno := syscall.RawSyscall6(uintptr(nr), uintptr(first), nothing, nothing, nothing, nothing, nothing)
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(min(errno, 255)), 0, 0)
}

func ask(call string) string {
	self, err := os.Executable()
	if err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = exec.CommandContext(ctx, self, single, call).Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "ok"
	case ctx.Err() != nil:
		return "stuck"
	case !errors.As(err, &exit):
		return err.Error()
	case exit.Exited():
		return strconv.Itoa(exit.ExitCode())
	}
	status, _ := exit.Sys().(syscall.WaitStatus)
	return "signal " + strconv.Itoa(int(status.Signal()))
}
