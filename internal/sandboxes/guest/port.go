package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// errNoPort says that stdin is no character device.
var errNoPort = errors.New("stdin is no port")

// takePort makes a channel of a copy of stdin, if that is a port, the character device of a machine to which the
// kernel gives what the host writes, and the other way; else it is errNoPort.
//
// A port must be polled in one place only. To poll it takes what the host wrote out of the
// queue, and the interrupt that comes for it then wakes nobody: of two who poll, one is told,
// and the other, who was looked at just before, sleeps on what is there. So stdin must come
// blocking: else os.Stdin and os.Stdout are in Go's poll already.
func takePort(fd int) (io.ReadWriteCloser, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("take the channel from stdin: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil, errNoPort
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
		return nil, errors.Join(errors.New("stdin does not block, so that the channel's port is polled twice and would lose what wakes it"), err)
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("take the channel from stdin: %w", err)
	}
	if err := unix.SetNonblock(own, true); err != nil {
		return nil, errors.Join(fmt.Errorf("use the channel's port: %w", err), unix.Close(own))
	}
	file := os.NewFile(uintptr(own), "port")
	if err := file.SetDeadline(time.Time{}); err != nil { // the kernel can't say when there is something to read
		return nil, errors.Join(fmt.Errorf("stdin is a device and no port, so it is not the channel: %w", err), file.Close())
	}
	return file, nil
}
