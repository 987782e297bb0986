package hostpath

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// AsUser does something with the rights of a user and a group on files, if this process is root: what it makes is
// theirs from the beginning, so that nothing that has a name has to be given to anybody. The groups of this process
// besides stay, and so do root's rights where the user is root. A user who is not root does it as it is.
func AsUser(uid, gid int, do func() error) error {
	if os.Geteuid() != 0 || uid == 0 && gid == os.Getegid() {
		return do()
	}
	done := make(chan error, 1)
	safego.Go(func() {
		done <- safego.Try(func() error {
			runtime.LockOSThread() // never unlocked: the thread ends with the user that it has
			if err := setFilesystemUser(uid, gid); err != nil {
				return err
			}
			return do()
		})
	})
	return <-done
}

// setFilesystemUser makes this thread a user's on files. The kernel tells of no failure but by the user that it has then.
func setFilesystemUser(uid, gid int) error {
	for _, set := range []struct {
		id  int
		set func(int) (int, error)
	}{{gid, unix.SetfsgidRetGid}, {uid, unix.SetfsuidRetUid}} {
		if _, err := set.set(set.id); err != nil {
			return err
		}
		if now, err := set.set(-1); err != nil || now != set.id {
			return errors.Join(fmt.Errorf("the thread stays the user %d for files, and is not %d", now, set.id), err)
		}
	}
	return nil
}
