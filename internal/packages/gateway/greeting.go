package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

// greeting is a guest's connection whose ClientHello is still to come.
type greeting struct {
	net.Conn
	// judge says whether a connection may name a host, and has it put on record if it may not.
	judge   func(hello *tls.ClientHelloInfo) error
	said    atomic.Bool // something has come
	whole   atomic.Bool // all of the ClientHello has
	refused atomic.Bool // for what it names, which is on record
}

// Read implements net.Conn.
func (c *greeting) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.said.Store(true)
	}
	return n, err
}

// CloseWrite ends one half.
func (c *greeting) CloseWrite() error { return httphead.CloseWrite(c.Conn) }

// judgeHello serves as the server's hook for a ClientHello that is whole. It judges the name, since crypto/tls asks for no
// certificate if the client offers no version and no protocol that the server speaks.
func (c *greeting) judgeHello(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	c.whole.Store(true)
	if err := c.judgeName(hello); err != nil {
		return nil, err
	}
	return nil, nil //nolint:nilnil // it asks for another configuration than the server's, and there is none
}

// judgeName judges the name that the client means, which may be another one when it says its ClientHello again.
func (c *greeting) judgeName(hello *tls.ClientHelloInfo) error {
	err := c.judge(hello)
	if err != nil {
		c.refused.Store(true)
	}
	return err
}

// problem says what is wrong with what came in place of a ClientHello, or with the one that did, by how the handshake
// has failed. "": nothing came; it is on record already; or it is the client that does not go on, which may trust
// nobody here.
func (c *greeting) problem(err error) string {
	_, other := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case !c.said.Load() || c.refused.Load() || c.whole.Load() && clientLeft(err):
		return ""
	case c.whole.Load(): // crypto/tls says what, in words of which some are the guest's
		return "the ClientHello of a connection to a registry offers nothing that it speaks, or is not followed by what belongs there: " +
			"it speaks TLS 1.2 and later, and HTTP/1.1 inside"
	case other:
		return "what came to a registry is no TLS, which alone it speaks"
	}
	return "the ClientHello of a connection to a registry can't be read, or broke off before its end"
}

// clientLeft tells whether a handshake has failed because its client went, said no itself or did not go on in time, or
// because the gateway has no certificate yet.
func clientLeft(err error) bool {
	op, isOp := errors.AsType[*net.OpError](err)
	_, isNet := errors.AsType[net.Error](err)
	switch {
	case isOp && op.Op == "local error": // an alert of this end
		return false
	case isNet, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, net.ErrClosed):
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, fault.ErrUnavailable)
}
