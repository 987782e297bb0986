package daemon

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/landlock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/seccomp"
)

// confinement is where and as whom the gateway runs. The zero value confines
// nothing: without root the gateway is the user's own process.
type confinement struct {
	Root string `json:"root,omitempty"` // its root directory from then on
	UID  int    `json:"uid,omitempty"`
	GID  int    `json:"gid,omitempty"`
	// Outside is a folder of the daemon's, which must be out of reach then.
	Outside string `json:"outside,omitempty"`
}

// settleRole gives up for good all that a role does not need: enter, the host's files but for
// those in reach (as seen from then on), and system calls.
func (c confinement) settleRole(reach func() landlock.Reach, calls func() error, log *slog.Logger) error {
	_, _ = time.Now().Zone() // read now: the file is out of reach soon
	if err := c.enterConfinement(); err != nil {
		return err
	}
	fenced, err := giveUp(func() error { return landlock.Enter(reach()) }, landlock.ErrMissing, "files of this host", log)
	if err != nil {
		return err
	}
	if fenced || c.Root != "" {
		if err := c.checkApart(); err != nil {
			return err
		}
	}
	_, err = giveUp(calls, seccomp.ErrMissing, "system calls", log)
	return err
}

// checkApart tries what must not be possible any more.
func (c confinement) checkApart() error {
	if _, err := os.ReadDir(c.Outside); err == nil {
		return fmt.Errorf("this process can still read %s, so it does not start", c.Outside)
	}
	return nil
}

// enterConfinement gives up everything that the gateway does not need, for good: the
// host's files, the root user, all capabilities, and any way to get them back.
// The system's root certificates are read before, because they lie outside.
func (c confinement) enterConfinement() error {
	if _, err := x509.SystemCertPool(); err != nil {
		return fmt.Errorf("read the system's root certificates: %w", err)
	}
	if c.Root == "" {
		return noNewPrivileges()
	}
	if c.UID == 0 || c.GID == 0 {
		return fmt.Errorf("the gateway must not run as root (user %d, group %d)", c.UID, c.GID)
	}
	if err := unix.Chroot(c.Root); err != nil {
		return fmt.Errorf("change the root directory: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	// These three reach all threads of the process.
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("drop the groups: %w", err)
	}
	if err := syscall.Setresgid(c.GID, c.GID, c.GID); err != nil {
		return fmt.Errorf("drop the group: %w", err)
	}
	if err := syscall.Setresuid(c.UID, c.UID, c.UID); err != nil {
		return fmt.Errorf("drop the user: %w", err)
	}
	return noNewPrivileges()
}

// giveUp has this process give something up. A kernel that lacks what it takes is told of;
// any other failure is one.
func giveUp(enter func() error, missing error, what string, log *slog.Logger) (entered bool, err error) {
	switch err := enter(); {
	case errors.Is(err, missing):
		log.Warn("a process keeps "+what+" that it does not need; cofferdam doctor says more", "err", err)
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// noNewPrivileges holds for all threads; the binary has no cgo, so the runtime
// can reach each of them.
func noNewPrivileges() error {
	if _, _, errno := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("set no_new_privs for all threads (a build with cgo can't; use make build): %w", errno)
	}
	return nil
}
