package keeper

import (
	"context"
	"errors"
	"net"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Call asks the guest's agent. A reply that is not OK comes back as it is and
// as a fault.ErrInvalid with the guest's sentence; it is the guest's word.
func (c *Client) Call(ctx context.Context, id string, call channel.Call) (channel.Reply, error) {
	var reply channel.Reply
	l, err := c.connect(ctx)
	if err != nil {
		return reply, err
	}
	defer l.close()
	if err := l.send(Request{Verb: VerbCall, ID: id}, call); err != nil {
		return reply, err
	}
	if _, err := l.receive(); err != nil {
		return reply, err
	}
	if err := l.ReadJSON(channel.FrameReply, &reply); err != nil {
		return reply, l.failed(err)
	}
	if !reply.OK {
		return reply, fault.Invalid("the sandbox refused the call %q: %s", call.Kind, tidy(reply.Error))
	}
	return reply, nil
}

// Stream asks the guest's agent, as Call does, and returns the connection on
// which, after the reply, the stream's bytes go both ways until either side
// closes, or the sandbox ends. A half-close is passed on. ctx bounds the asking,
// not the connection. A reply that is not OK comes back with a fault.ErrInvalid
// and no connection.
func (c *Client) Stream(ctx context.Context, id string, call channel.Call) (net.Conn, channel.Reply, error) {
	var reply channel.Reply
	l, err := c.connect(ctx)
	if err != nil {
		return nil, reply, err
	}
	err = l.send(Request{Verb: VerbStream, ID: id}, call)
	if err == nil {
		_, err = l.receive()
	}
	if err == nil {
		if err = l.ReadJSON(channel.FrameReply, &reply); err != nil {
			err = l.failed(err)
		} else if !reply.OK {
			err = fault.Invalid("the sandbox refused the call %q: %s", call.Kind, tidy(reply.Error))
		}
	}
	if err != nil {
		l.close()
		return nil, reply, err
	}
	if !l.stop() {
		_ = l.Raw().Close()
		return nil, reply, ctx.Err()
	}
	return l.Raw(), reply, nil
}

// Send passes one frame to a command without an attachment: FrameStdin (an empty
// one is the end of the input), FrameResize or FrameSignal. It returns when the
// guest has room for it, or ctx ends; then it may still arrive. A command that has
// ended is a fault.ErrConflict. Frames that several clients send come one after
// the other.
func (c *Client) Send(ctx context.Context, id, command string, kind channel.FrameType, payload []byte) error {
	l, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.send(Request{Verb: VerbSend, ID: id, Command: command}, nil); err != nil {
		return err
	}
	if err := l.WriteFrame(kind, payload); errors.Is(err, fault.ErrInvalid) {
		return err // of another error the keeper's response tells
	}
	_, err = l.receive()
	return err
}

// Exec starts a command and returns when the guest has agreed to it. Whether
// the program exists shows in the command's exit (127, 126).
func (c *Client) Exec(ctx context.Context, id string, exec channel.Exec, o ExecOptions) error {
	l, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	call := channel.Call{Kind: channel.CallExec, Exec: &exec}
	if err := l.send(Request{Verb: VerbExec, ID: id, Options: o}, call); err != nil {
		return err
	}
	_, err = l.receive()
	return err
}

// Attach returns a connection with a command's frames, for channel.NewConn:
// from the keeper FrameStarted as soon as the guest says so (never, if the command
// could not be started), FrameStdout, FrameStderr and FrameGap from an offset on
// (of the output that is kept: Command.Offset, and what was received so far, gaps
// included; or FromNow, or Tail), then FrameExit; to the keeper FrameStdin, FrameResize and
// FrameSignal, which go to the guest. An empty FrameStdin, and nothing else,
// ends the input. Closing (a half-close too) detaches and leaves the command
// alone. ctx bounds the attaching, not the connection.
//
// A connection that is not read holds the command back once its ring is full.
func (c *Client) Attach(ctx context.Context, id, command string, offset int64) (net.Conn, error) {
	l, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	err = l.send(Request{Verb: VerbAttach, ID: id, Command: command, Offset: offset}, nil)
	if err == nil {
		_, err = l.receive()
	}
	if err != nil {
		l.close()
		return nil, err
	}
	if !l.stop() {
		_ = l.Raw().Close()
		return nil, ctx.Err()
	}
	return l.Raw(), nil
}
