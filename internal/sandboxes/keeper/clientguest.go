package keeper

import (
	"context"
	"errors"
	"net"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// guestReply reads a guest's reply to a call, which comes after the keeper's response.
func guestReply(call channel.Call, reply *channel.Reply) func(*link) error {
	return func(l *link) error {
		if err := l.readDone(); err != nil {
			return err
		}
		if err := l.ReadJSON(channel.FrameReply, reply); err != nil {
			return l.linkError(err)
		}
		if !reply.OK {
			return fault.Invalid("the sandbox refused the call %q: %s", call.Kind, tidyLine(reply.Error))
		}
		return nil
	}
}

// Call asks the guest's agent. A reply that is not OK comes back as it is and
// as a fault.ErrInvalid with the guest's sentence; it is the guest's word.
func (c *Client) Call(ctx context.Context, id string, call channel.Call) (channel.Reply, error) {
	var reply channel.Reply
	err := c.converse(ctx, Request{Verb: VerbCall, ID: id}, call, guestReply(call, &reply))
	return reply, err
}

// Stream asks the guest's agent, as Call does, and returns the connection on
// which, after the reply, the stream's bytes go both ways until either side
// closes, or the sandbox ends. A half-close is passed on. ctx bounds the asking,
// not the connection. A reply that is not OK comes back with a fault.ErrInvalid
// and no connection.
func (c *Client) Stream(ctx context.Context, id string, call channel.Call) (net.Conn, channel.Reply, error) {
	var reply channel.Reply
	conn, err := c.beginAndKeep(ctx, Request{Verb: VerbStream, ID: id}, call, guestReply(call, &reply))
	return conn, reply, err
}

// Send passes one frame to a command without an attachment: FrameStdin (an empty
// one is the end of the input), FrameResize or FrameSignal. With input it returns when the
// guest has room for it, or ctx ends; then it may still arrive. Input that several clients
// send comes one after the other. A signal or a size waits for no input: Send returns when
// the guest says that it is done, which of a KILL is that the command is gone. A guest that
// does not say so in time is a fault.ErrUnavailable. A command that has ended is a
// fault.ErrConflict.
func (c *Client) Send(ctx context.Context, id, command string, kind channel.FrameType, payload []byte) error {
	return c.converse(ctx, Request{Verb: VerbSend, ID: id, Command: command}, nil, func(l *link) error {
		if err := l.WriteFrame(kind, payload); errors.Is(err, fault.ErrInvalid) {
			return err // of another error the keeper's response tells
		}
		return l.readDone()
	})
}

// Exec starts a command and returns when the guest has agreed to it. Whether
// the program exists shows in the command's exit (127, 126).
func (c *Client) Exec(ctx context.Context, id string, exec channel.Exec, o ExecOptions) error {
	call := channel.Call{Kind: channel.CallExec, Exec: &exec}
	return c.converse(ctx, Request{Verb: VerbExec, ID: id, Options: o}, call, (*link).readDone)
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
	return c.beginAndKeep(ctx, Request{Verb: VerbAttach, ID: id, Command: command, Offset: offset}, nil, (*link).readDone)
}
