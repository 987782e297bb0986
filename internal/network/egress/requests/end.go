package requests

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

// upstream is a TLS connection to the host that waits for its first request, or why there
// is none.
type upstream struct {
	mu    sync.Mutex // guards all
	conn  *tls.Conn  // nil: it was taken, or there is none
	since time.Time  // when it was made
	err   error
}

// staleTime is how long such a connection is used for a first request. Hosts end one on which
// nothing is said for some seconds (those written in Go, over HTTP/2, after ten), and a request
// that has waited for its place longer would be lost with it.
const staleTime = 5 * time.Second

// takeConn gives it, once; both nil: it was given already, or it is stale.
func (u *upstream) takeConn() (*tls.Conn, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	conn, err := u.conn, u.err
	u.conn, u.err = nil, nil
	if conn != nil && time.Since(u.since) > staleTime {
		_ = conn.Close() // nothing was said on it
		return nil, err
	}
	return conn, err
}

// hasFailed tells whether there was none.
func (u *upstream) hasFailed() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err != nil
}

func (u *upstream) closeConn() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.conn != nil {
		_ = u.conn.Close() // its other end sees it, or is gone
		u.conn = nil
	}
}

// terminateTLS connects to the host, and gives the client's end of TLS: it is offered the protocol
// that the host has chosen of those that it speaks. A host that can't be reached is told
// by an answer to each request. The client's refusal of the certificate is put on record.
func (c *Carrier) terminateTLS(ctx context.Context, guest net.Conn) (*tls.Conn, error) {
	conn := c.answerHandshake(ctx, guest)
	within, cancel := context.WithTimeout(ctx, c.config.HeadTime)
	defer cancel()
	err := conn.HandshakeContext(within)
	if far, ok := errors.AsType[*net.OpError](err); ok && far.Op == "remote error" {
		c.config.Refuse(ctx, &Refusal{Rule: door.RuleHostTLS, Reason: "the client refused the certificate with which TLS to " + c.config.Name +
			" is ended outside of the sandbox (" + far.Err.Error() + "); it has to trust the file in SSL_CERT_FILE"}, "")
	}
	return conn, err
}

// answerHandshake answers the client's handshake, which is still to come.
func (c *Carrier) answerHandshake(ctx context.Context, guest net.Conn) *tls.Conn {
	ended := c.config.Ended
	c.first = &upstream{}
	config := &tls.Config{
		Certificates:           []tls.Certificate{ended.Certificate},
		MinVersion:             tls.VersionTLS12,
		NextProtos:             ended.protocols(),
		SessionTicketsDisabled: true,
	}
	conn, err := c.handshake(ctx)
	if err != nil {
		c.first.err = err
		return tls.Server(guest, config)
	}
	c.first.conn, c.first.since = conn, time.Now()
	if len(config.NextProtos) > 0 {
		config.NextProtos = []string{cmp.Or(conn.ConnectionState().NegotiatedProtocol, "http/1.1")}
	}
	return tls.Server(guest, config)
}

// protocols are those that the client offers, as names.
func (e *Ended) protocols() []string {
	var all []string
	if e.HTTP2 {
		all = append(all, "h2")
	}
	if e.HTTP1 {
		all = append(all, "http/1.1")
	}
	return all
}

// dialPlain connects to the host without TLS for the transport.
func (c *Carrier) dialPlain(ctx context.Context) (net.Conn, error) {
	conn, err := c.config.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return &httphead.Conn{Conn: conn}, nil
}

// dialTLS connects to the host for the transport.
func (c *Carrier) dialTLS(ctx context.Context) (net.Conn, error) {
	if c.first != nil {
		if conn, err := c.first.takeConn(); conn != nil || err != nil {
			return conn, err
		}
	}
	return c.handshake(ctx)
}

// handshake connects to the host and verifies its certificate. It is offered what the
// client offers.
func (c *Carrier) handshake(ctx context.Context) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.AwaitTime)
	defer cancel()
	conn, err := c.config.Dial(ctx)
	if err != nil {
		return nil, err
	}
	ended := c.config.Ended
	counted := &charged{Conn: conn, memory: c.config.Memory}
	far := tls.Client(&httphead.Conn{Conn: counted}, &tls.Config{ServerName: c.config.Name, RootCAs: ended.Roots(), MinVersion: tls.VersionTLS12, NextProtos: ended.protocols()})
	if err := far.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // nothing was said on it
		return nil, &Refusal{Rule: door.RuleHostUnreached, Reason: handshakeProblem(c.config.Name, err), Status: http.StatusBadGateway}
	}
	if far.ConnectionState().NegotiatedProtocol == "h2" {
		if err := counted.chargeAnswers(); err != nil {
			_ = conn.Close() // as above
			return nil, err
		}
	}
	return far, nil
}

// handshakeProblem is what a client is told of a handshake with the host.
func handshakeProblem(name string, err error) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the certificate of " + name + " can't be verified on the host, so nothing is sent to it"
	}
	return "the TLS handshake with " + name + " failed"
}
