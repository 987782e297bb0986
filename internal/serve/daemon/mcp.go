package daemon

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/mcp"
)

// mcpPath is where agents speak the Model Context Protocol.
const mcpPath = "/mcp"

// openMCP makes what answers there. It is a client of our own /v1 with the agent's token, so
// that what a token may do is decided in one place, and a revoked one is of no use at once.
func openMCP(d *Daemon) http.Handler {
	inside := newInside()
	own := newServer("inside", inside, recovering(d.telemetry, d.opts.Log, d.api), d.opts.Log)
	d.serves = append(d.serves, own)
	server := mcp.New(mcp.Config{
		Connect: func(_ context.Context, secret string) (mcp.Backend, error) {
			return mcp.Over(client.Through("this daemon", secret, inside.dialInside)), nil
		},
		ApprovalURL: d.opts.Config.Approvals.URL, Installers: all.Installers(), Version: d.opts.Version, Logger: d.opts.Log.With("wire", wireMCP), Room: d.clients.room,
	})
	d.tcp.http.RegisterOnShutdown(server.Close)
	handler := server.Handler(d.clients.tokens, func(ctx context.Context) { d.api.Refused(ctx, mcpPath) })
	return d.clients.underway.Handler(d.clients.tokens.Check, handler)
}

// inside is a listener that only this process reaches.
type inside struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newInside() *inside {
	return &inside{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// dialInside makes a connection to it.
func (l *inside) dialInside(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements net.Listener.
func (l *inside) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *inside) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *inside) Addr() net.Addr { return insideAddr{} }

type insideAddr struct{}

func (insideAddr) Network() string { return "inside" }
func (insideAddr) String() string  { return "inside" }
