package backend

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Bounds of what a connection that lingers costs: its place is taken for so long, and so
// much of a body is read that nobody wants. Later bytes wait with their sender.
const (
	lingerTime  = 5 * time.Second
	lingerBytes = 1 << 20
)

// Lingering is a listener whose clients get the answer that is given before all of a
// request's body has come. Where a connection is closed with bytes that nobody has read, or
// more of them arrive later, the kernel resets it, and the client has an error in the place
// of the answer. So a connection whose last request had a body (Hurried says so) ends for its
// client first, and is closed when that has closed it, too, or when its time is over. Nothing
// lingers once the listener is closed.
//
// The server's ConnContext has to have LingerContext.
func Lingering(l net.Listener) net.Listener {
	life, end := context.WithCancel(context.Background())
	return &lingering{Listener: l, life: life, end: end}
}

type lingering struct {
	net.Listener
	life context.Context //nolint:containedctx // the listener's own
	end  context.CancelFunc
}

// Accept implements net.Listener.
func (l *lingering) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &lingeringConn{Conn: conn, life: l.life}, nil
}

// Close implements net.Listener.
func (l *lingering) Close() error {
	l.end()
	return l.Listener.Close()
}

// lingeringConn is one of its connections.
type lingeringConn struct {
	net.Conn
	life    context.Context //nolint:containedctx // the listener's
	sending atomic.Bool     // the client may be sending a body
	once    sync.Once
	err     error // of Close
}

// NetConn is the connection below, as tls.Conn has it.
func (c *lingeringConn) NetConn() net.Conn { return c.Conn }

// CloseWrite ends the connection for its client.
func (c *lingeringConn) CloseWrite() error {
	if half, ok := Innermost(c).(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

// Close implements net.Conn.
func (c *lingeringConn) Close() error {
	c.once.Do(func() {
		if c.sending.Load() && c.life.Err() == nil && c.CloseWrite() == nil {
			safego.Go(c.linger)
			return
		}
		c.err = c.Conn.Close()
	})
	return c.err
}

func (c *lingeringConn) linger() {
	defer c.Conn.Close()
	if c.SetReadDeadline(time.Time{}) != nil {
		return
	}
	over, cancel := context.WithTimeout(c.life, lingerTime)
	defer cancel()
	stop := safego.When(over, func() { _ = c.Conn.Close() }) // it ends the read
	defer stop()
	if _, err := io.CopyN(io.Discard, c.Conn, lingerBytes); err == nil {
		<-over.Done()
	}
}

// Innermost is the connection at the bottom of others, which say by NetConn what is below.
func Innermost(c net.Conn) net.Conn {
	for {
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = outer.NetConn()
	}
}

// lingerKey is where a request's context has its lingering connection.
type lingerKey struct{}

// LingerContext is for http.Server.ConnContext.
func LingerContext(ctx context.Context, c net.Conn) context.Context {
	for {
		if one, ok := c.(*lingeringConn); ok {
			return context.WithValue(ctx, lingerKey{}, one)
		}
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return ctx
		}
		c = outer.NetConn()
	}
}

// noteBody notes whether the last request of a connection has a body. HTTP/2 ends the body of
// one request without the connection.
func noteBody(ctx context.Context, body bool) {
	if c, ok := ctx.Value(lingerKey{}).(*lingeringConn); ok {
		c.sending.Store(body)
	}
}
