package guest

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// terminal is the agent's side of a pseudo-terminal, non-blocking so that a
// reader can be interrupted.
type terminal struct{ *os.File }

// openTerminal makes a terminal of the given size whose other side belongs to
// the user. The caller closes both.
func openTerminal(size channel.WindowSize, uid, gid int) (master terminal, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return terminal{}, nil, fmt.Errorf("open a terminal: %w", err)
	}
	master = terminal{os.NewFile(uintptr(fd), "terminal")}
	slave, err = master.unlock(fd)
	if err != nil {
		_ = master.Close()
		return terminal{}, nil, fmt.Errorf("open a terminal: %w", err)
	}
	// A program may want to open its terminal again by name. Not every kernel
	// lets the owner change, and few programs need it.
	_ = slave.Chown(uid, gid)
	if err := master.resize(size); err != nil {
		_ = master.Close()
		_ = slave.Close()
		return terminal{}, nil, fmt.Errorf("size a terminal: %w", err)
	}
	return master, slave, nil
}

// unlock allows the other side to be opened, and opens it.
func (t terminal) unlock(fd int) (*os.File, error) {
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, err
	}
	name := "/dev/pts/" + strconv.Itoa(number)
	slave, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(slave), name), nil
}

// resize sets the window; the kernel tells the foreground programs.
func (t terminal) resize(size channel.WindowSize) error {
	raw, err := t.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
	})
	if err != nil {
		return err
	}
	return failed
}
