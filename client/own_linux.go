package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// ErrStranger is the error of a socket behind which another user listens.
var ErrStranger = errors.New("another user listens there")

// Own is New for the socket of this user's own daemon, whose path is known to others: nothing
// is sent to a daemon of anybody but this user and root. Its directory may lie in /tmp, where
// somebody else can have made it first.
func Own(path string) *Client {
	return newClient("http://daemon", path, "", func(ctx context.Context) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err != nil {
			return nil, err
		}
		if err := checkOwner(conn, path); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	})
}

func checkOwner(conn net.Conn, path string) error {
	uid, err := listener(conn)
	if err != nil {
		return fmt.Errorf("who listens at %s can't be found out: %w", path, err)
	}
	if uid != 0 && uid != os.Geteuid() {
		return fmt.Errorf("%w: user %d, at %s; set COFFERDAM_RUNTIME to a directory of your own", ErrStranger, uid, path)
	}
	return nil
}

// listener is the user that listens at a connection's other end, by the kernel's word.
func listener(conn net.Conn) (int, error) {
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("%T is no connection to a Unix socket", conn)
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *syscall.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, failed
	}
	return int(peer.Uid), nil
}
