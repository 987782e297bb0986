package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/cofferdam-dev/cofferdam/internal/kit/httpqueue"
)

const (
	// maxStreams is how many requests of one connection over HTTP/2 may be under way.
	maxStreams = 100
	// waitingRoom is what the heads of requests may take that wait on all connections of a listener,
	// in bytes: of clients that have taken back more than maxStreams at once. Others have none there.
	waitingRoom = 32 << 20
)

// securedListener ends TLS, and bounds what waits on its connections over HTTP/2 until a handler is
// free: whoever asks and takes it back fills a queue of which no handler knows, and needs no token
// for it. A connection for whose next request there is no room ends.
type securedListener struct {
	net.Listener
	config *tls.Config
	log    *slog.Logger
	heads  waitingHeads
}

func secure(l net.Listener, config *tls.Config, log *slog.Logger) *securedListener {
	return &securedListener{Listener: l, config: config, log: log, heads: waitingHeads{semaphore.NewWeighted(waitingRoom)}}
}

// waitingHeads are those of a listener.
type waitingHeads struct{ room *semaphore.Weighted }

// Take implements httphead.Account.
func (w waitingHeads) Take(bytes int64) bool { return w.room.TryAcquire(bytes) }

// Give implements httphead.Account.
func (w waitingHeads) Give(bytes int64) { w.room.Release(bytes) }

// Accept implements net.Listener. The handshake comes with the first reading.
func (l *securedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &securedConn{secured: tls.Server(conn, l.config), queue: httpqueue.New(l.heads, maxStreams)}
	c.Conn = &httpqueue.Conn{Conn: c.secured, Queue: c.queue, Full: func() {
		l.log.Debug("a connection ended: it takes requests back faster than they can end", "from", conn.RemoteAddr().String(), "waiting", waitingRoom)
	}}
	return c, nil
}

// securedConn is a connection inside of TLS. For net/http it is a plain one, since nobody could look
// at the frames of another.
type securedConn struct {
	*httpqueue.Conn
	secured *tls.Conn
	queue   *httpqueue.Queue
	once    sync.Once
}

// Read implements net.Conn.
func (c *securedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if plain, is := errors.AsType[tls.RecordHeaderError](err); is && plain.Conn != nil {
		c.once.Do(func() { // who speaks no TLS may speak HTTP
			_, _ = io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\r\nThis address speaks HTTPS: ask by https://\n") // or nobody is there
		})
	}
	return n, err
}

// NetConn is the connection below.
func (c *securedConn) NetConn() net.Conn { return c.secured }

// Close implements net.Conn.
func (c *securedConn) Close() error {
	c.queue.End()
	return c.secured.Close()
}

// CloseWrite closes the half that is written: so the server lets its last answer arrive.
func (c *securedConn) CloseWrite() error { return c.secured.CloseWrite() }

// securedKey is where a request's context has its connection.
type securedKey struct{}

// handleSecured has a server serve what is inside of TLS: it speaks both protocols there, and tells
// requests of the TLS, as net/http does of its own. Called once, before the server serves.
func handleSecured(s *http.Server) {
	s.Protocols = &http.Protocols{}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	of, next := s.ConnContext, s.Handler
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if of != nil {
			ctx = of(ctx, conn)
		}
		return context.WithValue(ctx, securedKey{}, conn)
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(securedKey{}).(*securedConn); ok {
			conn.queue.Handle()
			defer conn.queue.Done()
			state := conn.secured.ConnectionState()
			r.TLS = &state
		}
		next.ServeHTTP(w, r)
	})
}
