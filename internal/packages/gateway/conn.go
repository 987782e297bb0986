package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

var errFeedClosed = errors.New("the gateway takes no more connections")

// guestConn is a guest's connection after the handshake.
type guestConn struct {
	net.Conn
	sandbox string
	memory  httphead.Account // the sandbox's; nil: nobody counts
	name    string           // that TLS was made for
	phrase  phrase
	unread  httphead.Unhandled
	gone    chan struct{} // closed when the server is done with it
}

// Read implements net.Conn.
func (c *guestConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.unread.Read(b[:n], err)
	return n, err
}

// Write implements net.Conn. It puts the reason phrase of the answer that
// begins here, if one is set, in its place.
func (c *guestConn) Write(p []byte) (int, error) {
	c.unread.Wrote(len(p))
	return c.phrase.writePhrase(c.Conn, p)
}

// connKey is the context key of a request's guestConn.
type connKey struct{}

func connOf(ctx context.Context) *guestConn {
	c, _ := ctx.Value(connKey{}).(*guestConn)
	return c
}

// feed is a listener whose connections are offered by ServeRegistry.
type feed struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newFeed() *feed { return &feed{conns: make(chan net.Conn), done: make(chan struct{})} }

func (f *feed) offerConn(c net.Conn) bool {
	select {
	case f.conns <- c:
		return true
	case <-f.done:
		return false
	}
}

// Accept implements net.Listener.
func (f *feed) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.done:
		return nil, errFeedClosed
	}
}

// Close implements net.Listener.
func (f *feed) Close() error {
	f.once.Do(func() { close(f.done) })
	return nil
}

// Addr implements net.Listener.
func (f *feed) Addr() net.Addr { return feedAddr{} }

type feedAddr struct{}

// Network implements net.Addr.
func (feedAddr) Network() string { return "guest" }

// String implements net.Addr.
func (feedAddr) String() string { return "guest" }

// phrase replaces the reason phrase of an HTTP/1.1 answer, which net/http does
// not let a handler choose and pip prints. The handler sets it before it
// writes; net/http has flushed the answer before by then, so the next write to
// the connection begins with the status line. Should it ever not, the answer
// goes out with the standard phrase.
type phrase struct {
	next atomic.Pointer[statusLine]
}

type statusLine struct {
	status int
	phrase string
}

func (p *phrase) setPhrase(status int, text string) { p.next.Store(&statusLine{status, text}) }

func (p *phrase) writePhrase(w io.Writer, b []byte) (int, error) {
	line := p.next.Swap(nil)
	if line == nil {
		return w.Write(b)
	}
	begin := []byte("HTTP/1.1 " + strconv.Itoa(line.status) + " ")
	standard := append(bytes.Clone(begin), http.StatusText(line.status)+"\r\n"...)
	rest, ok := bytes.CutPrefix(b, standard)
	if !ok {
		return w.Write(b)
	}
	ours := append(append(begin, line.phrase...), "\r\n"...)
	n, err := w.Write(append(ours, rest...))
	if err != nil {
		// How much of b that was only matters to a caller that would go on.
		return min(max(0, n-len(ours)+len(standard)), len(b)), err
	}
	return len(b), nil
}
