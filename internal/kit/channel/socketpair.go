package channel

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// SocketPair makes the wire of a channel. The host's end is for
// NewHostSession; the guest's end is to be passed to the sandbox as its stdin
// and its stdout (one descriptor for both), then closed here. Both are
// close-on-exec; the guest's end is blocking.
func SocketPair() (host net.Conn, guest *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a channel's socketpair: %w", err)
	}
	guest = os.NewFile(uintptr(fds[1]), "channel-guest")
	hostFile := os.NewFile(uintptr(fds[0]), "channel-host")
	defer hostFile.Close()
	host, err = net.FileConn(hostFile)
	if err != nil {
		_ = guest.Close()
		return nil, nil, fmt.Errorf("use a channel's socketpair: %w", err)
	}
	return host, guest, nil
}
