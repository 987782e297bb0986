package keeper

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// dispatch does what a client asks for. An error is yet to be sent; success
// has been answered.
func (s *Server) dispatch(ctx context.Context, conn *channel.Conn, req *Request) error {
	switch req.Verb {
	case VerbPing:
		answer(conn, Response{OK: true, Hello: s.hello()})
		return nil
	case VerbLaunch:
		box, err := s.launch(req.Launch)
		if err != nil {
			return err
		}
		describe(conn, box, false)
		return nil
	case VerbList:
		for _, box := range s.all() {
			describe(conn, box, true)
		}
		answer(conn, Response{OK: true})
		return nil
	case VerbShutdown:
		return s.shutdown(conn)
	case VerbSettle:
		s.settle(ctx, conn, req.ID)
		return nil
	default: // the others are about one sandbox
		box, err := s.find(req.ID)
		if err != nil {
			return err
		}
		return s.dispatchTo(ctx, conn, box, req)
	}
}

func (s *Server) dispatchTo(ctx context.Context, conn *channel.Conn, box *sandbox, req *Request) error {
	switch req.Verb {
	case VerbGet:
		describe(conn, box, false)
		return nil
	case VerbTrack:
		return done(conn, box.track(req.Processes, req.Pids))
	case VerbSetMeta:
		return done(conn, box.setMeta(req.Meta))
	case VerbSignal:
		return done(conn, box.signal(req.Signal))
	case VerbForget:
		return done(conn, s.forget(box))
	case VerbFreeze:
		return done(conn, s.freeze(watch(ctx, conn), box, req.Freeze))
	case VerbThaw:
		return done(conn, s.thaw(watch(ctx, conn), box, req.Launch))
	case VerbAdopt:
		return done(conn, box.adopt(watch(ctx, conn), req.Adopt, req.Options))
	case VerbCall, VerbStream, VerbExec:
		return s.toGuest(ctx, conn, box, req)
	case VerbSend:
		return sendTo(ctx, conn, box, req.Command)
	case VerbOutput:
		c, err := box.command(req.Command)
		if err == nil {
			c.tell(conn)
		}
		return err
	case VerbAttach:
		c, err := box.command(req.Command)
		if err != nil {
			return err
		}
		_ = conn.Raw().SetReadDeadline(time.Time{})
		return box.attach(ctx, conn, c, req.Offset)
	case VerbKill:
		s.log.Info("sandbox killed", slog.String("sandbox", box.id))
		return done(conn, box.kill(watch(ctx, conn)))
	case VerbWait:
		exit, err := box.wait(watch(ctx, conn))
		if err == nil {
			answer(conn, Response{OK: true, Exit: exit})
		}
		return err
	default:
		return fault.Invalid("the keeper does not know the verb %q", excerpt.Of(string(req.Verb), 32))
	}
}

func done(conn *channel.Conn, err error) error {
	if err == nil {
		answer(conn, Response{OK: true})
	}
	return err
}

// toGuest is a call, a stream or an exec: the guest's own frame follows the
// request.
func (s *Server) toGuest(ctx context.Context, conn *channel.Conn, box *sandbox, req *Request) error {
	kind, payload, err := conn.ReadFrame()
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the call to the guest did not follow")
	}
	if kind != channel.FrameOpen {
		return fault.Invalid("a call to the guest is a frame of type %d, not %d", channel.FrameOpen, kind)
	}
	first := append([]byte(nil), payload...) // watch reads into the same buffer
	if req.Verb == VerbStream {
		return box.carry(ctx, conn, first)
	}
	ctx = watch(ctx, conn)
	if req.Verb == VerbExec {
		return done(conn, box.exec(ctx, first, req.Options))
	}
	reply, err := box.call(ctx, first)
	if err != nil {
		return err
	}
	answer(conn, Response{OK: true, More: true})
	_ = conn.WriteFrame(channel.FrameReply, reply)
	return nil
}

// watch returns a context that ends when the client has closed its connection,
// which is also how its goroutine ends.
func watch(ctx context.Context, conn *channel.Conn) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	_ = conn.Raw().SetReadDeadline(time.Time{})
	errand.Go(func() {
		_, _, err := conn.ReadFrame()
		cancel(fmt.Errorf("the client left: %w", err))
	})
	return ctx
}

// describe sends a sandbox and its commands, a Response for each so that none
// is too long.
func describe(conn *channel.Conn, box *sandbox, more bool) {
	view, commands := box.view()
	answer(conn, Response{OK: true, Sandbox: &view, More: more || len(commands) > 0})
	for i := range commands {
		answer(conn, Response{OK: true, Command: &commands[i], More: more || i < len(commands)-1})
	}
}

// forget drops a sandbox that is over, and the output of its commands.
func (s *Server) forget(box *sandbox) error {
	if heir := box.successor(); heir != nil {
		return s.forget(heir)
	}
	box.mu.Lock()
	alive := box.alive()
	box.mu.Unlock()
	if alive {
		return fault.New(fault.ErrConflict, "sandbox %s is alive; kill it first", box.id)
	}
	_ = box.session.Close()
	s.remove(box)
	box.forgetCommands()
	return nil
}

// shutdown ends the keeper if no sandbox lives.
func (s *Server) shutdown(conn *channel.Conn) error {
	s.mu.Lock()
	living := 0
	for _, box := range s.sandboxes {
		box.mu.Lock()
		if box.alive() {
			living++
		}
		box.mu.Unlock()
	}
	if living == 0 {
		s.stopping = true
	}
	s.mu.Unlock()
	if living > 0 {
		return fault.New(fault.ErrConflict, "the keeper has %d living sandboxes; destroy them first", living)
	}
	answer(conn, Response{OK: true})
	s.stop()
	return nil
}
