package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/turns"
)

var errFeedClosed = errors.New("the gateway takes no more connections")

// handshakeTime bounds the TLS handshake of a guest.
const handshakeTime = 15 * time.Second

// ServeRegistry serves a guest's connection to one of the names: TLS, then
// HTTP/1.1. It returns when the connection has ended, and closes it. The
// sandbox is what the keeper attached to the connection.
func (g *Gateway) ServeRegistry(conn net.Conn, sandbox string) {
	if !g.flights.Begin() {
		_ = conn.Close() // nothing was sent on it
		return
	}
	defer g.flights.End()
	defer conn.Close()
	ctx, cancel := context.WithTimeout(g.flights.Life(), handshakeTime)
	defer cancel()
	session := tls.Server(conn, g.tlsConfig())
	if err := session.HandshakeContext(ctx); err != nil {
		g.log.Debug("a guest's TLS handshake failed", "sandbox", sandbox, "error", err)
		return
	}
	c := &guestConn{Conn: session, sandbox: sandbox, name: session.ConnectionState().ServerName, gone: make(chan struct{})}
	if !g.feed.offer(c) {
		return
	}
	<-c.gone
}

// tlsConfig speaks HTTP/1.1 only, since HTTP/2 has no reason phrases, and only
// to those who ask for one of the names.
func (g *Gateway) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			c := g.certificate.Load()
			if c == nil || !g.IsRegistry(hello.ServerName) {
				return nil, fault.New(fault.ErrForbidden, "a name that the gateway does not answer for")
			}
			return c, nil
		},
	}
}

// guestConn is a guest's connection after the handshake.
type guestConn struct {
	net.Conn
	sandbox string
	name    string // that TLS was made for
	phrase  phrase

	once sync.Once
	gone chan struct{}
}

// Close implements net.Conn.
func (c *guestConn) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}

// Write implements net.Conn. It puts the reason phrase of the answer that
// begins here, if one is set, in its place.
func (c *guestConn) Write(p []byte) (int, error) { return c.phrase.write(c.Conn, p) }

// connKey is the context key of a request's guestConn.
type connKey struct{}

func connOf(ctx context.Context) *guestConn {
	c, _ := ctx.Value(connKey{}).(*guestConn)
	return c
}

func (g *Gateway) httpServer() *http.Server {
	return &http.Server{
		Handler:           http.HandlerFunc(g.serve),
		ReadHeaderTimeout: 20 * time.Second,
		ReadTimeout:       g.cfg.Limits.RequestTime, // there are no bodies
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelWarn),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if guest, ok := c.(*guestConn); ok { // not reached otherwise: the feed has no others
				ctx = turns.For(ctx, guest.sandbox)
			}
			return context.WithValue(ctx, connKey{}, c)
		},
	}
}

// feed is a listener whose connections are offered by ServeRegistry.
type feed struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newFeed() *feed { return &feed{conns: make(chan net.Conn), done: make(chan struct{})} }

func (f *feed) offer(c net.Conn) bool {
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
