package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

// handshakeTime bounds the TLS handshake of a guest.
const handshakeTime = 15 * time.Second

// ServeRegistry serves a guest's connection to one of the names: TLS, then
// HTTP/1.1. It returns when the connection has ended, and closes it. The
// sandbox is what the keeper attached to the connection. If conn is an httphead.Account, what is
// kept for answers is taken of that.
func (g *Gateway) ServeRegistry(conn net.Conn, sandbox string) {
	if !g.flights.Begin() {
		_ = conn.Close() // nothing was sent on it
		return
	}
	defer g.flights.End()
	defer conn.Close()
	ctx, cancel := context.WithTimeout(g.flights.Life(), handshakeTime)
	defer cancel()
	greeting := &greeting{Conn: conn, judge: func(hello *tls.ClientHelloInfo) error { return g.judgeHello(hello, sandbox) }}
	config := g.tlsConfig(greeting)
	session := tls.Server(&httphead.Taken{Conn: greeting, Within: g.cfg.Limits.UnreadTime}, config)
	if err := session.HandshakeContext(ctx); err != nil {
		g.log.Debug("a guest's TLS handshake failed", "sandbox", sandbox, "error", err)
		if problem := greeting.problem(err); problem != "" {
			g.refuseUnread(sandbox, problem)
		}
		return
	}
	memory, _ := conn.(httphead.Account)
	c := &guestConn{Conn: session, sandbox: sandbox, memory: memory, name: session.ConnectionState().ServerName, gone: make(chan struct{})}
	if !g.feed.offerConn(c) {
		return
	}
	<-c.gone
}

// tlsConfig speaks HTTP/1.1 only, since HTTP/2 has no reason phrases, and only
// to those who ask for one of the names.
func (g *Gateway) tlsConfig(from *greeting) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"http/1.1"},
		GetConfigForClient: from.judgeHello,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if err := from.judgeName(hello); err != nil { // of the second ClientHello, if there were two
				return nil, err
			}
			if c := g.names.certificate.Load(); c != nil {
				return c, nil
			}
			return nil, fault.New(fault.ErrUnavailable, "the gateway answers for no name yet")
		},
	}
}

// judgeHello returns fault.ErrForbidden, and records it, if a ClientHello names a host for which the gateway does not answer.
func (g *Gateway) judgeHello(hello *tls.ClientHelloInfo, sandbox string) error {
	if g.names.hasName(hello.ServerName) {
		return nil
	}
	g.refuseHello(hello.Context(), sandbox, hello.ServerName)
	return fault.New(fault.ErrForbidden, "a name that the gateway does not answer for")
}

// refuseHello records that a guest connected to a registry and named another host, or what
// is no name, whose text is then not worth keeping.
func (g *Gateway) refuseHello(ctx context.Context, sandbox, name string) {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-_."
	var err error
	if name == "" || strings.Trim(name, allowed) != "" {
		_, err = g.door.Failed(ctx, door.Failure{Sandbox: sandbox, ResolvedBy: policy.ByCanonical, Reason: "a connection to a registry names no host"})
	} else {
		reason := "the ClientHello names " + name + ", and the connection is to a package registry"
		_, err = g.door.HostRefused(ctx, door.HostRefusal{Sandbox: sandbox, Name: name, Port: 443, Rule: door.RuleHostTLS, Reason: reason})
	}
	if err != nil {
		g.log.Error("a refused connection to a registry could not be recorded", "sandbox", sandbox, "error", err)
	}
}

// watchConn has it put on record what the server answers by itself, since it is no request. It is
// told the end after all else.
func (g *Gateway) watchConn(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*guestConn)
	if !ok {
		return // not reached: the feed has no others
	}
	switch state { //nolint:exhaustive // the others are no request's
	case http.StateIdle:
		c.unread.Idle()
	case http.StateClosed:
		if c.unread.Something() {
			g.refuseUnread(c.sandbox, unreadReason(c.unread.Failure()))
		}
		close(c.gone) // only now: who waits for the end of a sandbox's connections waits for their records
	}
}

// unreadReason says what is wrong with what is no request, by the error with which reading it
// has ended.
func unreadReason(err error) string {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "the header of a request to a registry did not come in time"
	case err == nil:
		return "what came to a registry is no request that can be read in one way, has too large a header, or came behind one that ended the connection"
	}
	return "a request to a registry broke off in its header"
}

// refuseUnread records what is no request of this gateway's form, whoever waits for that.
func (g *Gateway) refuseUnread(sandbox, reason string) {
	if _, err := g.door.Failed(context.Background(), door.Failure{Sandbox: sandbox, ResolvedBy: policy.ByCanonical, Reason: reason}); err != nil {
		g.log.Error("what is no request to a registry could not be recorded", "sandbox", sandbox, "error", err)
	}
}

func (g *Gateway) httpServer() *http.Server {
	return &http.Server{
		Handler:           http.HandlerFunc(g.serveRequest),
		ReadHeaderTimeout: 20 * time.Second,
		ReadTimeout:       g.cfg.Limits.RequestTime, // there are no bodies
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    8 << 10, // what becomes of one is within what a connection takes of the sandbox's budget

		DisableGeneralOptionsHandler: true, // what is no request of ours is on record

		ConnState: g.watchConn,
		ErrorLog:  slog.NewLogLogger(g.log.Handler(), slog.LevelWarn),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if guest, ok := c.(*guestConn); ok { // not reached otherwise: the feed has no others
				ctx = fairqueue.For(ctx, guest.sandbox)
			}
			return context.WithValue(ctx, connKey{}, c)
		},
	}
}
