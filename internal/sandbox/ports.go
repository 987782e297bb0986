package sandbox

import (
	"context"
	"net"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Dial connects to a port of the sandbox's own loopback interface. A port that
// the policy does not publish is a fault.ErrForbidden; one on which nothing
// listens a fault.ErrUnavailable. The connection has half-closes and deadlines,
// and closing it resets nothing: the program inside sees an end of what it reads,
// and what it still writes is thrown away. ctx bounds the connecting only.
func (m *Manager) Dial(ctx context.Context, id string, port int) (net.Conn, error) {
	s, err := m.inUse(id)
	if err != nil {
		return nil, err
	}
	if port < 1 || port > 65535 {
		return nil, fault.Invalid("%d is not a port", port)
	}
	if !s.policy.Publishes(port) {
		return nil, fault.New(fault.ErrForbidden, "the policy does not publish port %d of the sandbox; this line would: %s", port, strings.TrimSpace(s.policy.PublishSuggestion(port)))
	}
	conn, reply, err := m.stream(ctx, s, channel.Call{Kind: channel.CallDial, Port: port})
	if err != nil && reply.Code == channel.CodeNotFound {
		return nil, fault.New(fault.ErrUnavailable, "port %d of the sandbox %s can't be reached: %v", port, id, err)
	}
	return conn, err
}

// Send passes one frame (FrameStdin, FrameResize or FrameSignal) to a running
// command. One that has ended is a fault.ErrConflict.
func (m *Manager) Send(ctx context.Context, id, command string, kind channel.FrameType, payload []byte) error {
	s, err := m.inUse(id)
	if err != nil {
		return err
	}
	defer s.use()()
	return m.cfg.Keeper.Send(ctx, id, command, kind, payload)
}
