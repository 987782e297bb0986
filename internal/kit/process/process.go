// Package process tells processes apart. A number alone does not: the kernel
// gives it to another process as soon as the first one has been waited for, and
// on a host that starts thousands of sandboxes a day it comes around again. So
// what is kept of a process is its number with the time of its start (ID), and
// what is done to one that is nobody's child is done through a handle that was
// compared with that first (Handle).
//
// A process is over when it has been waited for, and dead from its end until then.
package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrOver tells that no such process is there any more.
var ErrOver = errors.New("the process is over")

// ID is one process, for good: no later one has the same number and start.
type ID struct {
	Pid   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since the host's boot
}

// Of is the process that has a number now, dead or alive. It is for who knows
// that the number is still the process's that he means: he is its parent and has
// not waited for it, or compares what it is afterwards.
func Of(pid int) (ID, error) {
	stat, err := Read(pid)
	return stat.ID, err
}

// Self is this process.
func Self() (ID, error) { return Of(os.Getpid()) }

func (id ID) String() string { return fmt.Sprintf("%d (started at %d)", id.Pid, id.Start) }

// Is tells whether the process is there, dead or alive, and its number not
// another's. That may change before the answer is used, unless the caller is the
// one who waits for it.
func (id ID) Is() bool {
	now, err := Of(id.Pid)
	return err == nil && now == id
}

// Ordinary tells whether a number can be signalled as one process: 0 and
// negative numbers are groups, or everything, and 1 is init.
func Ordinary(pid int) bool { return pid > 1 }

// Signal reaches that process or none: ErrOver when it is over.
func (id ID) Signal(sig unix.Signal) error {
	handle, err := Open(id)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // an old kernel, or a filter of calls
		return id.signalByNumber(sig)
	}
	if err != nil {
		return err
	}
	defer handle.Close()
	return handle.Signal(sig)
}

// signalByNumber leaves a moment in which the number may become another's.
func (id ID) signalByNumber(sig unix.Signal) error {
	if !Ordinary(id.Pid) || !id.Is() {
		return ErrOver
	}
	return asOver(unix.Kill(id.Pid, sig))
}

func asOver(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return ErrOver
	}
	return err
}
