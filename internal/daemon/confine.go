package daemon

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sysfilter"
)

// confinement is where and as whom the gateway runs. The zero value confines
// nothing: without root the gateway is the user's own process.
type confinement struct {
	Root string `json:"root,omitempty"` // its root directory from then on
	UID  int    `json:"uid,omitempty"`
	GID  int    `json:"gid,omitempty"`
}

// enter gives up everything that the gateway does not need, for good: the
// host's files, the root user, all capabilities, and any way to get them back.
// The system's root certificates are read before, because they lie outside.
func (c confinement) enter() error {
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

// without has this process give up system calls. A kernel that has no filters is told of;
// any other failure is one.
func without(enter func() error, log *slog.Logger) error {
	err := enter()
	if errors.Is(err, sysfilter.ErrMissing) {
		log.Warn("a process keeps system calls that it does not need; cofferdam doctor says more", "err", err)
		return nil
	}
	return err
}

// noNewPrivileges holds for all threads; the binary has no cgo, so the runtime
// can reach each of them.
func noNewPrivileges() error {
	if _, _, errno := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("set no_new_privs for all threads (a build with cgo can't; use make build): %w", errno)
	}
	return nil
}
