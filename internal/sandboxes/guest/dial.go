package guest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// portDeadline is how long a program that listens may take to be connected to.
const portDeadline = 30 * time.Second

// hangUpDeadline is how long a program may take for the last bytes of a host that
// reads no more.
const hangUpDeadline = 10 * time.Second

// dials are the connections of the host to programs in the sandbox.
type dials struct {
	mu   sync.Mutex // guards the rest
	last uint64
	open map[string]*dialed
}

// dialed is one of them.
type dialed struct {
	conn   net.Conn
	spoken chan struct{} // closed when all that the host said is with the program
	over   chan struct{} // closed at the end
}

func (d *dials) addDial(conn net.Conn) (string, *dialed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[string]*dialed{}
	}
	d.last++
	id := strconv.FormatUint(d.last, 10)
	d.open[id] = &dialed{conn: conn, spoken: make(chan struct{}), over: make(chan struct{})}
	return id, d.open[id]
}

func (d *dials) endDial(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one, ok := d.open[id]; ok {
		close(one.over)
		delete(d.open, id)
	}
}

func (d *dials) getDial(id string) *dialed {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[id]
}

// answerDial connects the host to a port of the sandbox's loopback interface. It reaches a program
// of the sandbox, never a name that leads outside: those have other addresses. Nor does it
// reach what the agent itself has there, or whoever may connect to a published port would use the
// network as if they were inside.
func (a *Agent) answerDial(ctx context.Context, stream *channel.Conn, port int) error {
	if port < 1 || port > 65535 {
		return replyFile(stream, nil, invalidFile("%d is not a port", port))
	}
	if a.proxy.hasPort(port) || isPortOf(a.config.DNS, port) {
		return replyFile(stream, nil, &fileError{channel.CodeNotFound, fmt.Sprintf("port %d is for programs in the sandbox alone, which reach names by it", port)})
	}
	conn, err := a.loopback(ctx, port)
	if err != nil {
		return replyFile(stream, nil, &fileError{channel.CodeNotFound, fmt.Sprintf("nothing in the sandbox takes connections on port %d", port)})
	}
	defer conn.Close()
	id, d := a.dials.addDial(conn)
	defer a.dials.endDial(id)
	if err := stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true, Text: id}); err != nil {
		return err
	}
	// A program that does not close must not keep the agent from its end.
	defer context.AfterFunc(ctx, func() { resetConn(conn) })()
	program := channel.NewConn(conn)
	var answering sync.WaitGroup
	answering.Go(func() { channel.Copy(stream, program) })
	channel.Copy(program, stream)
	close(d.spoken)
	answering.Wait()
	return nil
}

// isPortOf tells whether an address is on a port.
func isPortOf(address string, port int) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && int(at.Port()) == port
}

// hangUp ends a connection as a client that goes away does: a half-close alone
// would let a program talk to nobody for ever.
func (a *Agent) hangUp(ctx context.Context, stream *channel.Conn, id string) error {
	d := a.dials.getDial(id)
	if err := replyCall(stream, nil); err != nil || d == nil {
		return err // it may have ended by itself
	}
	ctx, cancel := a.clock.withTimeout(ctx, hangUpDeadline)
	defer cancel()
	select {
	case <-d.spoken:
	case <-d.over:
	case <-ctx.Done():
	}
	resetConn(d.conn)
	return nil
}

// loopback connects by IPv4, or else by IPv6.
func (a *Agent) loopback(ctx context.Context, port int) (net.Conn, error) {
	ctx, cancel := a.clock.withTimeout(ctx, portDeadline)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		conn, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort("::1", strconv.Itoa(port)))
	}
	return conn, err
}
