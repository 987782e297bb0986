package gateway

import (
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"

	"github.com/cofferdam-dev/cofferdam/internal/httphead"
)

// greeting is a guest's connection whose ClientHello is still to come.
type greeting struct {
	net.Conn
	said  atomic.Bool // something has come
	whole atomic.Bool // all of the ClientHello has, and whoever reads it judges it
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

// heard is the server's hook for a ClientHello that is whole.
func (c *greeting) heard(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.whole.Store(true)
	return nil, nil //nolint:nilnil // it asks for another configuration than the server's, and there is none
}

// problem says what is wrong with what came in place of a ClientHello, by how the handshake has failed; "": nothing
// came, or one did.
func (c *greeting) problem(err error) string {
	_, other := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case !c.said.Load() || c.whole.Load():
		return ""
	case other:
		return "what came to a registry is no TLS, which alone it speaks"
	}
	return "the ClientHello of a connection to a registry can't be read, or broke off before its end"
}
