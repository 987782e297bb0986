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

// takePort is the channel if stdin is a port, the character device of a machine to which the
// kernel gives what the host writes, and the other way; else errNoPort.
func takePort() (io.ReadWriteCloser, error) {
	var st unix.Stat_t
	if err := unix.Fstat(stdin, &st); err != nil {
		return nil, fmt.Errorf("take the channel from stdin: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil, errNoPort
	}
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
