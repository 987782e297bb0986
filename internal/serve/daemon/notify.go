package daemon

import (
	"errors"
	"net"
	"os"
	"strings"
)

// notify tells the service manager that started the daemon how it stands
// ("READY=1", "STOPPING=1"): one datagram to the socket that it names. Without one
// nobody is told.
func notify(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	if rest, abstract := strings.CutPrefix(path, "@"); abstract {
		path = "\x00" + rest
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return errors.Join(err, conn.Close())
}

// tellManager tells the service manager, where a failure changes nothing.
func (d *Daemon) tellManager(state string) {
	if err := notify(state); err != nil {
		d.opts.Log.Warn("the service manager can't be told", "state", state, "err", err)
	}
}
