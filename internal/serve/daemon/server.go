package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/accept"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// The bounds to which every server holds its clients. There is no limit for a whole request
// or answer: streams live as long as what they tell of.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	maxBuffered   = 1 << 20 // of what the requests of one connection over HTTP/2 bring, until their handlers read it

	// unaryGrace is how long requests may go on once the daemon ends, before those
	// that are streams are told; endGrace is the time for all of it.
	unaryGrace = time.Second
	endGrace   = 4 * time.Second
)

// server is a listener and what answers on it.
type server struct {
	name     string
	listener net.Listener
	secured  bool // what it serves is inside of TLS
	http     *http.Server
	streams  context.CancelFunc // ends the contexts of its requests
}

// newServer makes one that does not serve yet. Mistakes of clients are told at the level of
// debugging: they could fill the log otherwise.
func newServer(name string, l net.Listener, handler http.Handler, log *slog.Logger) *server {
	life, end := context.WithCancel(context.Background())
	_, secured := l.(*securedListener)
	l = accept.Patient(l, log)
	return &server{name: name, listener: l, secured: secured, streams: end, http: &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, WriteByteTimeout: httphead.Untaken,
			MaxReceiveBufferPerStream: backend.ReceiveBuffer, MaxReceiveBufferPerConnection: maxBuffered,
		},
		BaseContext: func(net.Listener) context.Context { return life },
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
}

// use is how a handler is used, for the daemon that ends when it is idle.
type use struct {
	busy atomic.Int64
	last atomic.Int64 // unix nanoseconds of the last request's end
}

// countRequests counts a handler's requests.
func (u *use) countRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.busy.Add(1)
		defer func() {
			u.last.Store(time.Now().UnixNano())
			u.busy.Add(-1)
		}()
		next.ServeHTTP(w, r)
	})
}

// isIdle reports whether nothing was asked for some time.
func (u *use) isIdle(since time.Duration) bool {
	return u.busy.Load() == 0 && time.Since(time.Unix(0, u.last.Load())) > since
}

// serveAll starts the servers. The first that fails says so on the channel.
func serveAll(servers []*server) <-chan error {
	failed := make(chan error, len(servers))
	for _, s := range servers {
		if s.secured {
			handleSecured(s.http)
		}
		safego.Go(func() {
			if err := safego.Try(func() error { return s.http.Serve(s.listener) }); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve the %s listener: %w", s.name, err)
			}
		})
	}
	return failed
}

// endAll ends the servers: nobody new comes in, requests are answered, streams are
// told that this is the end, and what goes on after endGrace is cut off.
func endAll(ctx context.Context, servers []*server, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endGrace)
	defer cancel()
	var ending sync.WaitGroup
	for _, s := range servers {
		safego.In(&ending, func() {
			defer s.streams()
			tell := safego.After(unaryGrace, s.streams)
			defer tell.Stop()
			if err := s.http.Shutdown(ctx); err != nil {
				log.Info("requests were cut off at the daemon's end", "listener", s.name)
				_ = s.http.Close() // it has nothing left to say
			}
		})
	}
	ending.Wait()
}

// closeAll gives the listeners back of servers that may never have served.
func closeAll(servers []*server) {
	for _, s := range servers {
		_ = s.http.Close() // with the listener, if it has served
		s.listener.Close()
		s.streams()
	}
}
