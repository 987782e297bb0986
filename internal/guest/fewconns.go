package guest

import (
	"net"
	"sync"
)

// fewConns is a listener that closes connections past a number: descriptors of
// the agent are not for a command to use up.
type fewConns struct {
	net.Listener
	slots chan struct{}
}

func newFewConns(listener net.Listener, most int) *fewConns {
	return &fewConns{Listener: listener, slots: make(chan struct{}, most)}
}

// Accept returns the next connection for which there is room.
func (l *fewConns) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &countedConn{Conn: conn, free: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			reset(conn)
		}
	}
}

// countedConn gives its slot back when it closes.
type countedConn struct {
	net.Conn
	free func()
}

// Close closes the connection.
func (c *countedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
