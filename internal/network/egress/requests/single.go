package requests

import (
	"io"
	"net"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

// single is a listener for one connection, and that connection, of which some was read.
type single struct {
	net.Conn
	from io.Reader
	next chan net.Conn
	head httphead.Meter // of what the client says over HTTP/1
	full func()         // called once there is no room for a head; nil: nobody wants to know
	once sync.Once
	gone chan struct{} // closed when the connection is
}

func newSingle(conn net.Conn, from io.Reader) *single {
	return &single{Conn: conn, from: from, next: make(chan net.Conn, 1), gone: make(chan struct{})}
}

// Listen is a listener for one connection, which ends with it.
func Listen(conn net.Conn) net.Listener {
	one := newSingle(conn, conn)
	one.offerConn(one)
	return one
}

// offerConn makes Accept return a connection: this one, or what is spoken over it. Once.
func (s *single) offerConn(conn net.Conn) { s.next <- conn }

// Read implements net.Conn.
func (s *single) Read(b []byte) (int, error) {
	n, err := s.from.Read(b)
	if full := s.head.Count(n); full != nil {
		n, err = 0, full
		if s.full != nil {
			s.full()
		}
	}
	return n, err
}

// Close implements net.Conn and net.Listener.
func (s *single) Close() error {
	s.once.Do(func() { close(s.gone) })
	return s.Conn.Close()
}

// CloseWrite closes the half that is written: so the server lets its last answer arrive.
func (s *single) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return s.Conn.Close()
}

// Accept implements net.Listener.
func (s *single) Accept() (net.Conn, error) {
	select {
	case conn := <-s.next:
		return conn, nil
	case <-s.gone:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (s *single) Addr() net.Addr { return s.LocalAddr() }
