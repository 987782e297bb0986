package keeper

import (
	"context"
	"errors"
	"io"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// attach tells a client that a command has started, plays its output from an
// offset on, then its exit, and passes the client's input to the guest meanwhile. It ends when the
// client is gone or has got the exit. Until then the client's place holds the
// guest back once the ring is full.
func (s *sandbox) attach(ctx context.Context, conn *channel.Conn, c *keptCommand, offset int64) error {
	if offset != Tail { // whose end is on record only if the daemon hears of it, however many others listen
		leave, err := s.takeClientSlot(s.follows, "clients that follow commands")
		if err != nil {
			return err
		}
		defer leave()
	}
	place, err := c.out.placeReader(offset)
	if err != nil {
		return err
	}
	defer place.detach()
	sendResponse(conn, Response{OK: true})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	safego.Go(func() { // ends with the connection, or when the guest takes what it was writing
		defer cancel()
		defer conn.Raw().Close()
		s.takeInput(ctx, conn, c)
	})
	if tellStart(ctx, conn, c) && playOutput(ctx, conn, place) { // otherwise the client left, which is its right
		<-c.done // the ring is closed just before the exit is set
		_ = conn.WriteJSON(channel.FrameExit, c.viewCommand().Exit)
	}
	return nil
}

// takeClientSlot takes one of a sandbox's slots for what; if there is none, fault.ErrExhausted says so.
func (s *sandbox) takeClientSlot(slots chan struct{}, what string) (leave func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	default:
		return nil, fault.Exhausted(0, "sandbox %s has %d %s already; end one of these first", s.id, cap(slots), what)
	}
}

// tellStart waits for the guest's first word about a command, which no output
// precedes; one that could not be started has none.
func tellStart(ctx context.Context, conn *channel.Conn, c *keptCommand) bool {
	select {
	case <-c.began:
	case <-ctx.Done():
		return false
	}
	pid := c.viewCommand().PID
	return pid == 0 || conn.WriteJSON(channel.FrameStarted, channel.Started{PID: pid}) == nil
}

// playOutput writes output and tells whether it got to the end.
func playOutput(ctx context.Context, conn *channel.Conn, place *cursor) bool {
	buf := make([]byte, channel.MaxPayload/2)
	for {
		got, err := place.nextChunk(ctx, buf)
		switch {
		case err != nil:
			return errors.Is(err, io.EOF)
		case got.gap > 0:
			err = conn.WriteJSON(channel.FrameGap, channel.Gap{Bytes: got.gap})
		default:
			err = conn.WriteFrame(got.kind, buf[:got.n])
		}
		if err != nil {
			return false
		}
	}
}

// takeInput passes frames on until the client closes or breaks the protocol.
// Frames after the command's end are thrown away. A signal or a size waits for the
// input before it on the same connection; Client.Send does not.
func (s *sandbox) takeInput(ctx context.Context, conn *channel.Conn, c *keptCommand) {
	for {
		kind, payload, err := conn.ReadFrame()
		if err != nil {
			return
		}
		switch kind {
		case channel.FrameStdin:
			c.passInput(kind, payload)
		case channel.FrameResize, channel.FrameSignal:
			// An attachment has no answers. Input that a frozen sandbox does not take waits for its thaw.
			if err := s.control(ctx, c, kind, payload); errors.Is(err, fault.ErrConflict) {
				c.passInput(kind, payload)
			}
		default:
			return
		}
	}
}
