package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/accept"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel/resumable"
)

// errNoListener says that stdin is no socket on which anybody could connect.
var errNoListener = errors.New("stdin is no socket on which the host connects")

// takeListener takes the channel if stdin is a socket on which the host connects, again after
// each time that its connection was lost; else errNoListener. Nobody else can: a machine's
// port is its host's, and of other sockets only the host has the name.
func takeListener() (io.ReadWriteCloser, error) {
	if listens, err := unix.GetsockoptInt(stdin, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || listens == 0 {
		return nil, errNoListener
	}
	own, err := unix.FcntlInt(stdin, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("take the channel from stdin: %w", err)
	}
	if err := unix.SetNonblock(own, true); err != nil {
		return nil, errors.Join(fmt.Errorf("use the channel's socket: %w", err), unix.Close(own))
	}
	end := resumable.New()
	go attend(os.NewFile(uintptr(own), "channel"), end)
	return end, nil
}

// attend gives an end each connection that the host makes; the newest is the one that it has.
func attend(listener *os.File, end *resumable.End) {
	defer end.Close() //nolint:errcheck // it can't fail
	defer listener.Close()
	raw, err := listener.SyscallConn()
	if err != nil {
		return
	}
	for tries := 0; ; {
		var conn *os.File
		var failed error
		err := raw.Read(func(fd uintptr) (done bool) {
			conn, failed = acceptHost(int(fd))
			return !errors.Is(failed, unix.EAGAIN)
		})
		switch {
		case err != nil:
			return
		case accept.Passes(failed):
			tries++
			time.Sleep(accept.Pause(tries))
		case failed != nil:
			return
		case conn != nil:
			tries = 0
			_ = end.Attach(conn) // one that fails is closed, and the host tries again
		}
	}
}

// acceptHost takes a connection of the host's; nil for one of anybody else's.
func acceptHost(fd int) (*os.File, error) {
	got, from, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return nil, err
	}
	if peer, ok := from.(*unix.SockaddrVM); ok && peer.CID != unix.VMADDR_CID_HOST {
		return nil, unix.Close(got)
	}
	return os.NewFile(uintptr(got), "channel"), nil
}
