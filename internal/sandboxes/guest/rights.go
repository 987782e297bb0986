package guest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// unchanged is -1 for the system calls that set ids.
const unchanged = ^uintptr(0)

// actAs runs do with what user may do to files, and no more: on a thread of its own
// whose effective ids are the user's and which has no effective capabilities.
// A descriptor that do opens keeps working afterwards.
//
// Only the effective ids change, so that the thread can come back, and so that
// it can't be signalled or traced by the user meanwhile. The Go runtime makes no
// thread from one that is locked, so nothing inherits them.
func actAs(user channel.User, do func() error) error {
	if !isRoot() { // a thread more may be one too many in a sandbox that is full of processes
		if user.UID != os.Getuid() {
			return fmt.Errorf("the agent may not act as the user %.80q", user.Name)
		}
		return do()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		back, err := become(user)
		if err == nil {
			err = do()
		}
		// A thread that can't come back ends with this goroutine, still locked.
		if back() == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// become gives this thread the user's rights. back, which is never nil, returns
// to what it was; it is to be called after an error, too.
func become(user channel.User) (back func() error, err error) {
	nothing := func() error { return nil }
	groups, err := unix.Getgroups()
	if err != nil {
		return nothing, fmt.Errorf("read the agent's groups: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return nothing, fmt.Errorf("read the agent's capabilities: %w", err)
	}
	gid := os.Getegid()
	back = func() error {
		return errors.Join(
			ownThread(unix.SYS_SETRESUID, unchanged, 0, unchanged),
			unix.Capset(&header, &caps[0]), // this thread's only
			ownThread(unix.SYS_SETRESGID, unchanged, uintptr(gid), unchanged),
			setGroups(groups),
		)
	}
	bare := caps
	bare[0].Effective, bare[1].Effective = 0, 0
	for _, step := range []func() error{
		func() error { return setGroups(nil) },
		func() error { return ownThread(unix.SYS_SETRESGID, unchanged, uintptr(user.GID), unchanged) },
		func() error { return ownThread(unix.SYS_SETRESUID, unchanged, uintptr(user.UID), unchanged) },
		func() error { return unix.Capset(&header, &bare[0]) }, // root's programs have none either
	} {
		if err := step(); err != nil {
			return back, fmt.Errorf("take the rights of the user %.80q: %w", user.Name, err)
		}
	}
	return back, nil
}

// ownThread does a system call for this thread alone, where the syscall package
// would do it for all.
func ownThread(call, a, b, c uintptr) error {
	if _, _, errno := syscall.RawSyscall(call, a, b, c); errno != 0 {
		return errno
	}
	return nil
}

func setGroups(groups []int) error {
	if len(groups) == 0 {
		return ownThread(unix.SYS_SETGROUPS, 0, 0, 0)
	}
	list := make([]uint32, len(groups))
	for i, gid := range groups {
		list[i] = uint32(gid)
	}
	err := ownThread(unix.SYS_SETGROUPS, uintptr(len(list)), uintptr(unsafe.Pointer(&list[0])), 0) //nolint:gosec // the call takes a pointer
	runtime.KeepAlive(list)
	return err
}
