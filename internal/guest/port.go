package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// takePort makes a channel of a copy of stdin, if it is a port: the character device of a
// machine to which the kernel gives what the host writes, and the other way.
func takePort() (io.ReadWriteCloser, error) {
	own, err := unix.FcntlInt(stdin, unix.F_DUPFD_CLOEXEC, 3)
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
