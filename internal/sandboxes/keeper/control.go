package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// The times that bound the asking of a guest to signal a command.
const (
	maxControls    = 16               // at once in a sandbox, beside its calls: commands that take all of those can still be ended
	controlTimeout = 15 * time.Second // an agent takes up to ten to end a tree of processes
)

// control passes a signal or a terminal's size to a command by a call of its own, past all
// input that waits, and returns when the guest says that it is done. A guest that does not
// say so in time is a fault.ErrUnavailable: then nobody knows what became of the command.
func (s *sandbox) control(ctx context.Context, c *keptCommand, kind channel.FrameType, payload []byte) error {
	first, err := controlCall(c.id, kind, payload)
	if err != nil {
		return err
	}
	if at, _ := s.phaseNow(); at == frozen {
		return fault.New(fault.ErrConflict, "sandbox %s is frozen, so its command %s takes no signal: thaw the sandbox first, or end it", s.id, c.id)
	}
	within, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	call := controlFrame{kind: kind, payload: payload, first: first}
	kept := c.keepKill(call) // whatever becomes of who waits for it
	if err := c.awaitAnswer(within); err != nil && (kept == nil || !c.hasStream()) {
		return s.unconfirmed(ctx, c, err)
	}
	if kept != nil { // it is passed on, and may have ended the command already
		return s.unconfirmed(ctx, c, kept.awaitKill(within))
	}
	return s.unconfirmed(ctx, c, s.passControl(within, c, call))
}

// controlFrame is a client's frame for a command, beside its stream.
type controlFrame struct {
	kind    channel.FrameType
	payload []byte
	first   []byte // the guest's first frame for it
}

// keptKill is a kill that came before the guest's yes to its command. All who sent one share it.
type keptKill struct {
	frame controlFrame  // guarded by command.mu until the command has a stream
	done  chan struct{} // closed when err is what became of it
	err   error
}

func (k *keptKill) awaitKill(ctx context.Context) error {
	select {
	case <-k.done:
		return k.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// passControl has the guest do what a frame asks for.
func (s *sandbox) passControl(ctx context.Context, c *keptCommand, f controlFrame) error {
	reply, err := s.exchangeControl(ctx, f.first)
	if err == nil && reply.Error == channel.UnknownCall(channel.CallControl) {
		// An agent of before this call, in a copy that came up as it was: it takes signals
		// behind input alone, and says nothing of them.
		if err = c.sendInput(ctx, f.kind, f.payload); err == nil && isKill(f.kind, f.payload) {
			err = c.awaitEnd(ctx)
		}
	} else if err == nil {
		return controlResult(c, reply)
	}
	return err
}

// keepKill keeps a kill for a command that the guest has not said yes to: the command is killed as soon
// as it has, though nobody waits for that any more. One of a whole tree is what remains of several. Nil:
// f is no kill, or the command has a stream.
func (c *keptCommand) keepKill(f controlFrame) *keptKill {
	if !isKill(f.kind, f.payload) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stream != nil:
		return nil
	case c.kept == nil:
		c.kept = &keptKill{frame: f, done: make(chan struct{}), err: safego.ErrLost}
	case killsTree(f.payload):
		c.kept.frame = f
	}
	return c.kept
}

// passKill passes on a kill that came before the guest's yes.
func (s *sandbox) passKill(c *keptCommand, kill *keptKill) {
	defer close(kill.done)
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
	defer cancel()
	kill.err = s.passControl(ctx, c, kill.frame)
	if kill.err != nil && c.running() {
		s.log.Warn("a command was killed before its start was answered, and the kill is not confirmed", slog.String("sandbox", s.id), slog.String("command", c.id), slog.Any("error", kill.err))
	}
}

// controlCall is the guest's first frame for one of a client's.
func controlCall(id string, kind channel.FrameType, payload []byte) ([]byte, error) {
	control := channel.Control{Command: id}
	var err error
	if kind == channel.FrameSignal {
		control.Signal = new(channel.Signal)
		err = channel.DecodeJSON(kind, payload, control.Signal)
	} else {
		control.Resize = new(channel.WindowSize)
		err = channel.DecodeJSON(kind, payload, control.Resize)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(channel.Call{Kind: channel.CallControl, Control: &control})
}

// isKill tells whether a client's frame is a signal that nothing survives.
func isKill(kind channel.FrameType, payload []byte) bool {
	var signal channel.Signal
	return kind == channel.FrameSignal && channel.DecodeJSON(kind, payload, &signal) == nil && strings.TrimPrefix(signal.Name, "SIG") == "KILL"
}

// killsTree tells whether a signal goes to all that the command started.
func killsTree(payload []byte) bool {
	var signal channel.Signal
	return channel.DecodeJSON(channel.FrameSignal, payload, &signal) == nil && signal.Tree
}

// controlResult is what a guest's reply means.
func controlResult(c *keptCommand, reply channel.Reply) error {
	switch {
	case reply.OK:
		return nil
	case reply.Code == channel.CodeNotFound:
		return c.endedError()
	default:
		return fault.Invalid("the sandbox refused the signal or size for the command %s: %s", c.id, tidyLine(reply.Error))
	}
}

// unconfirmed is the error of who can't know what became of a command.
func (s *sandbox) unconfirmed(ctx context.Context, c *keptCommand, err error) error {
	switch {
	case err == nil, !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fault.New(fault.ErrUnavailable, "the agent of sandbox %s did not confirm within %s that the command %s got its signal, so that it may run on; end the sandbox to be sure", s.id, controlTimeout, c.id)
	}
}

// exchangeControl asks the guest in one of the slots that are for that alone. A guest that
// does not read keeps its slot, not its caller.
func (s *sandbox) exchangeControl(ctx context.Context, first []byte) (channel.Reply, error) {
	select {
	case s.controls <- struct{}{}:
	case <-ctx.Done():
		return channel.Reply{}, ctx.Err()
	}
	result := make(chan opened, 1)
	safego.Go(func() {
		defer func() { <-s.controls }()
		var o opened
		o.err = safego.Try(func() (err error) {
			o.stream, o.reply, err = s.exchange(ctx, first)
			return err
		})
		result <- o
		if o.err == nil {
			_ = o.stream.Close()
		}
	})
	var reply channel.Reply
	select {
	case o := <-result:
		if o.err != nil {
			return reply, o.err
		}
		return reply, channel.DecodeJSON(channel.FrameReply, o.reply, &reply)
	case <-ctx.Done():
		return reply, ctx.Err()
	}
}
