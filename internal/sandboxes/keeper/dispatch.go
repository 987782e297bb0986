package keeper

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// dispatch does what a client asks for. An error is yet to be sent; success
// has been answered.
func (s *Server) dispatch(ctx context.Context, conn *channel.Conn, req *Request) error {
	switch req.Verb {
	case VerbPing:
		sendResponse(conn, Response{OK: true, Hello: s.makeHello()})
		return nil
	case VerbLaunch:
		box, err := s.launch(req.Launch)
		if err != nil {
			return err
		}
		describeSandbox(conn, box, false)
		return nil
	case VerbList:
		for _, box := range s.listSandboxes() {
			describeSandbox(conn, box, true)
		}
		sendResponse(conn, Response{OK: true})
		return nil
	case VerbShutdown:
		return s.shutdown(conn)
	case VerbSettle:
		s.settleStreams(ctx, conn, req.ID)
		return nil
	default: // the others are about one sandbox
		box, err := s.findSandbox(req.ID)
		if err != nil {
			return err
		}
		return s.dispatchTo(ctx, conn, box, req)
	}
}

func (s *Server) dispatchTo(ctx context.Context, conn *channel.Conn, box *sandbox, req *Request) error {
	switch req.Verb {
	case VerbGet:
		describeSandbox(conn, box, false)
		return nil
	case VerbTrack:
		return answerDone(conn, box.trackProcesses(req.Processes, req.Pids))
	case VerbSetMeta:
		return answerDone(conn, box.setMeta(req.Meta))
	case VerbSignal:
		return answerDone(conn, box.signalProcesses(req.Signal))
	case VerbForget:
		return answerDone(conn, s.forgetSandbox(box))
	case VerbFreeze:
		return answerDone(conn, s.freeze(untilClosed(ctx, conn), box, req.Freeze))
	case VerbThaw:
		return answerDone(conn, s.thawSandbox(untilClosed(ctx, conn), box, req.Launch))
	case VerbAdopt:
		return answerDone(conn, box.adoptCommand(untilClosed(ctx, conn), req.Adopt, req.Options))
	case VerbCall, VerbStream, VerbExec:
		return s.toGuest(ctx, conn, box, req)
	case VerbSend:
		return sendTo(ctx, conn, box, req.Command)
	case VerbOutput:
		c, err := box.commandByID(req.Command)
		if err == nil {
			c.answerOutput(conn)
		}
		return err
	case VerbAttach:
		c, err := box.commandByID(req.Command)
		if err != nil {
			return err
		}
		_ = conn.Raw().SetReadDeadline(time.Time{})
		return box.attach(ctx, conn, c, req.Offset)
	case VerbKill:
		s.log.Info("sandbox killed", slog.String("sandbox", box.id))
		return answerDone(conn, box.killProcesses(untilClosed(ctx, conn)))
	case VerbWait:
		exit, err := box.waitExit(untilClosed(ctx, conn))
		if err == nil {
			sendResponse(conn, Response{OK: true, Exit: exit})
		}
		return err
	default:
		return fault.Invalid("the keeper does not know the verb %q", text.Shorten(string(req.Verb), 32))
	}
}

func answerDone(conn *channel.Conn, err error) error {
	if err == nil {
		sendResponse(conn, Response{OK: true})
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
		return box.carryStream(ctx, conn, first)
	}
	ctx = untilClosed(ctx, conn)
	if req.Verb == VerbExec {
		return answerDone(conn, box.startExec(ctx, first, req.Options))
	}
	reply, err := box.callGuest(ctx, first)
	if err != nil {
		return err
	}
	sendResponse(conn, Response{OK: true, More: true})
	_ = conn.WriteFrame(channel.FrameReply, reply)
	return nil
}

// untilClosed returns a context that ends when the client has closed its connection,
// which is also how its goroutine ends.
func untilClosed(ctx context.Context, conn *channel.Conn) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	_ = conn.Raw().SetReadDeadline(time.Time{})
	safego.Go(func() {
		_, _, err := conn.ReadFrame()
		cancel(fmt.Errorf("the client left: %w", err))
	})
	return ctx
}

// describeSandbox sends a sandbox and its commands, a Response for each so that none
// is too long.
func describeSandbox(conn *channel.Conn, box *sandbox, more bool) {
	view, commands := box.viewSandbox()
	sendResponse(conn, Response{OK: true, Sandbox: &view, More: more || len(commands) > 0})
	for i := range commands {
		sendResponse(conn, Response{OK: true, Command: &commands[i], More: more || i < len(commands)-1})
	}
}

// forgetSandbox drops a sandbox that is over, and the output of its commands.
func (s *Server) forgetSandbox(box *sandbox) error {
	if heir := box.successor(); heir != nil {
		return s.forgetSandbox(heir)
	}
	box.mu.Lock()
	alive := box.isAlive()
	box.mu.Unlock()
	if alive {
		return fault.New(fault.ErrConflict, "sandbox %s is alive; kill it first", box.id)
	}
	_ = box.session.Close()
	s.removeSandbox(box)
	box.forgetCommands()
	return nil
}

// shutdown ends the keeper if no sandbox lives.
func (s *Server) shutdown(conn *channel.Conn) error {
	s.mu.Lock()
	living := 0
	for _, box := range s.sandboxes {
		box.mu.Lock()
		if box.isAlive() {
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
	sendResponse(conn, Response{OK: true})
	s.stop()
	return nil
}
