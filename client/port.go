package client

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strconv"
)

// portProtocol is what the connection to a port is upgraded to.
const portProtocol = "cofferdam-port"

// Port connects to a server in a sandbox, on its loopback interface. Status 403: the
// policy does not publish the port; 503: nothing listens there. Ending ctx afterwards
// closes the connection.
func (c *Client) Port(ctx context.Context, sandbox string, port int) (net.Conn, error) {
	req, err := c.newRequest(ctx, http.MethodGet, sandboxPath(sandbox)+"/ports/"+strconv.Itoa(port), nil)
	if err != nil {
		return nil, err
	}
	conn, in, stop, err := c.upgraded(ctx, req, portProtocol)
	if err != nil {
		return nil, err
	}
	return &portConn{Conn: conn, in: in, forget: stop}, nil
}

// portConn reads what came with the upgrade's answer first.
type portConn struct {
	net.Conn

	in     *bufio.Reader
	forget func() bool
}

func (p *portConn) Read(b []byte) (int, error) { return p.in.Read(b) }

// CloseWrite ends the client's half.
func (p *portConn) CloseWrite() error {
	if half, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return p.Close()
}

// Close drops the connection.
func (p *portConn) Close() error {
	p.forget()
	return p.Conn.Close()
}
