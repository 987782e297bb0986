package guest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

// portDeadline is how long a program that listens may take to be connected to.
const portDeadline = 30 * time.Second

// dial connects the host to a port of the sandbox's loopback interface. What it
// reaches is a program of the sandbox, never a name that leads outside: those
// have other addresses.
func (a *Agent) dial(ctx context.Context, stream *channel.Conn, port int) error {
	if port < 1 || port > 65535 {
		return replyFile(stream, nil, invalidFile("%d is not a port", port))
	}
	conn, err := a.loopback(ctx, port)
	if err != nil {
		return replyFile(stream, nil, &fileError{channel.CodeNotFound, fmt.Sprintf("nothing in the sandbox takes connections on port %d", port)})
	}
	defer conn.Close()
	if err := replyFile(stream, nil, nil); err != nil {
		return err
	}
	// A program that does not close must not keep the agent from its end.
	defer context.AfterFunc(ctx, func() { reset(conn) })()
	channel.Splice(channel.NewConn(conn), stream)
	return nil
}

// loopback connects by IPv4, or else by IPv6.
func (a *Agent) loopback(ctx context.Context, port int) (net.Conn, error) {
	ctx, cancel := a.clock.within(ctx, portDeadline)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		conn, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort("::1", strconv.Itoa(port)))
	}
	return conn, err
}
