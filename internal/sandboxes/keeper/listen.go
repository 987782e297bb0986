package keeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/filelock"
)

// listener is the keeper's socket, and the lock that says there is one keeper.
type listener struct {
	*net.UnixListener
	path string
	lock *filelock.Lock
}

// listen takes the lock beside the socket, so that what lies at path is either
// stale or ours, and puts the socket in place only when its mode is right.
func listen(ctx context.Context, path string) (*listener, error) {
	lock, err := filelock.Take(path + ".lock")
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, fault.Wrap(fault.ErrConflict, err, "another keeper listens at %s", path)
	case err != nil:
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the keeper cannot listen at %s", path)
	}
	l, err := bindSocket(ctx, path)
	if err != nil {
		_ = lock.Release()
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the keeper cannot listen at %s", path)
	}
	return &listener{UnixListener: l, path: path, lock: lock}, nil
}

func bindSocket(ctx context.Context, path string) (*net.UnixListener, error) {
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", fresh)
	if err != nil {
		return nil, err
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a %T is no Unix socket", l), l.Close())
	}
	u.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(fresh, 0o600), os.Rename(fresh, path)); err != nil {
		return nil, errors.Join(err, u.Close(), os.Remove(fresh))
	}
	return u, nil
}

// closeListener removes the socket, then lets the next keeper in.
func (l *listener) closeListener() {
	_ = l.Close()
	_ = os.Remove(l.path)
	_ = l.lock.Release()
}

// checkPeer lets in only the keeper's own user, and root.
func checkPeer(conn net.Conn) error {
	cred, err := peerOf(conn)
	if err != nil {
		return err
	}
	if cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		return fault.New(fault.ErrForbidden, "user %d may not use this keeper", cred.Uid)
	}
	return nil
}
