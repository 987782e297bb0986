package sandbox

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// The times that bound the end of a connection.
const (
	maxDial       = 64 // bytes of the guest's name for it
	hangUpTimeout = 10 * time.Second
)

// Dial connects to a port of the sandbox's own loopback interface. A port that
// the policy does not publish is a fault.ErrForbidden; one on which nothing
// listens a fault.ErrUnavailable. The connection has half-closes and deadlines, and
// closing it is closing the program's, once it has what was written. ctx bounds the
// connecting only.
func (n *inside) Dial(ctx context.Context, id string, port int) (net.Conn, error) {
	return n.dialPort(ctx, id, port, (*policy.Policy).Publishes)
}

// DialHere dials for the host's own users, who can do the same by a command: where
// the policy says nothing of ports they may connect to any.
func (n *inside) DialHere(ctx context.Context, id string, port int) (net.Conn, error) {
	return n.dialPort(ctx, id, port, (*policy.Policy).LeavesToHost)
}

func (n *inside) dialPort(ctx context.Context, id string, port int, may func(*policy.Policy, int) bool) (net.Conn, error) {
	s, err := n.runningSandbox(id)
	if err != nil {
		return nil, err
	}
	if port < 1 || port > 65535 {
		return nil, fault.Invalid("%d is not a port", port)
	}
	if !may(s.policy, port) {
		return nil, fault.New(fault.ErrForbidden, "the policy does not publish port %d of the sandbox; this line would: %s", port, strings.TrimSpace(s.policy.PublishSuggestion(port)))
	}
	conn, reply, err := n.stream(ctx, s, channel.Call{Kind: channel.CallDial, Port: port})
	if err != nil && reply.Code == channel.CodeNotFound {
		return nil, fault.New(fault.ErrUnavailable, "port %d of the sandbox %s can't be reached: %v", port, id, err)
	}
	if err != nil {
		return nil, err
	}
	return &dialed{Conn: conn, hangUp: sync.OnceFunc(func() { n.hangUp(id, reply.Text) })}, nil
}

// dialed is a connection to a program inside.
type dialed struct {
	net.Conn
	ended  atomic.Bool // the program has said all
	hangUp func()
}

// Read notices the end.
func (d *dialed) Read(p []byte) (int, error) {
	n, err := d.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		d.ended.Store(true)
	}
	return n, err
}

// CloseWrite ends the client's half.
func (d *dialed) CloseWrite() error {
	if half, ok := d.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return d.Close()
}

// Close has the program hear of it, though it may be talking.
func (d *dialed) Close() error {
	err := d.Conn.Close()
	if !d.ended.Load() {
		d.hangUp()
	}
	return err
}

// hangUp tells a guest that nobody reads a connection any more; a guest that can't
// be told keeps it until its program ends it. It returns at once.
func (n *inside) hangUp(id, dial string) {
	if len(dial) > maxDial {
		return
	}
	n.background.doInBackground(func() {
		ctx, cancel := context.WithTimeout(n.background.ctx, hangUpTimeout)
		defer cancel()
		if _, err := n.cfg.Keeper.Call(ctx, id, channel.Call{Kind: channel.CallHangUp, Dial: dial}); err != nil {
			n.cfg.Log.Debug("a guest was not told of the end of a connection", "sandbox", id, "err", err)
		}
	})
}

// Send passes one frame (FrameStdin, FrameResize or FrameSignal) to a running
// command. One that has ended is a fault.ErrConflict.
func (n *inside) Send(ctx context.Context, id, command string, kind channel.FrameType, payload []byte) error {
	s, err := n.runningSandbox(id)
	if err != nil {
		return err
	}
	defer s.clients.Use()()
	return n.cfg.Keeper.Send(ctx, id, command, kind, payload)
}
