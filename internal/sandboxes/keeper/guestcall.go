package keeper

import (
	"bytes"
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// opened is a stream to the guest and its reply to our first frame.
type opened struct {
	stream  *channel.Conn
	release func() // gives its slot back
	reply   []byte
	err     error
}

// openStream opens a stream with a FrameOpen, and reads the reply. A frozen guest
// can hold a write for ever, so all of it happens in a goroutine which has its
// own slot, of calls or of what takeSlot tells apart from them. A caller that no longer
// wants to wait closes the stream by reading the channel's value later, or not at all.
func (s *sandbox) openStream(ctx context.Context, first []byte) (<-chan opened, error) {
	release, err := s.takeSlot(first)
	if err != nil {
		return nil, err
	}
	first = bytes.Clone(first)
	result := make(chan opened, 1)
	safego.Go(func() {
		o := opened{release: release}
		o.err = safego.Try(func() (err error) {
			o.stream, o.reply, err = s.exchange(ctx, first)
			return err
		})
		if o.err != nil {
			release()
		}
		result <- o
	})
	return result, nil
}

// takeSlot takes the slot of a stream that begins with first. Those that connect to ports have their
// own: strangers bring them about, and are not to keep the sandbox's owner from its commands. So has the
// daemon's word of a freeze or thaw: with all commands that there may be a guest hears of it, too, and is
// not taken for one that does not answer.
func (s *sandbox) takeSlot(first []byte) (release func(), err error) {
	slots, what := s.calls, "commands and calls"
	var call channel.Call
	if channel.DecodeJSON(channel.FrameOpen, first, &call) == nil {
		switch call.Kind { //nolint:exhaustive // all others are calls
		case channel.CallDial:
			slots, what = s.dials, "connections to its ports"
		case channel.CallHold, channel.CallResume:
			slots, what = s.freezes, "words of a freeze or thaw that its agent has not answered"
		}
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	default:
		return nil, fault.New(fault.ErrUnavailable, "sandbox %s has %d %s already; wait for one to end", s.id, cap(slots), what)
	}
}

// exchange opens a stream, sends first and returns the guest's reply. The
// stream is nil if there is an error.
func (s *sandbox) exchange(ctx context.Context, first []byte) (*channel.Conn, []byte, error) {
	stream, err := s.session.Open(ctx)
	if err != nil {
		return nil, nil, s.unreachable(err)
	}
	reply, err := converse(ctx, stream, first)
	if err != nil {
		_ = stream.Close()
		return nil, nil, s.unreachable(err)
	}
	s.met.Store(true)
	return stream, reply, nil
}

func converse(ctx context.Context, stream *channel.Conn, first []byte) ([]byte, error) {
	if err := stream.WriteFrame(channel.FrameOpen, first); err != nil {
		return nil, err
	}
	stop := safego.When(ctx, func() { _ = stream.Raw().SetReadDeadline(longAgo()) })
	kind, reply, err := stream.ReadFrame()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil && kind != channel.FrameReply {
		err = &channel.FrameError{Type: kind, Length: uint32(len(reply)), Problem: "a reply was expected"}
	}
	return reply, err
}

// unreachable says why the guest does not answer. Of one that never did, its log is
// all that knows.
func (s *sandbox) unreachable(err error) error {
	if !s.isOver() {
		return fault.Wrap(fault.ErrUnavailable, err, "the agent of sandbox %s did not answer", s.id)
	}
	reason := ""
	if !s.met.Load() {
		reason = readLogTail(s.began.path, s.began.size)
	}
	if v, _ := s.viewSandbox(); v.Exit != nil {
		return fault.New(fault.ErrUnavailable, "sandbox %s has ended: its first process with %d%s", s.id, v.Exit.Code, reason)
	}
	return fault.New(fault.ErrUnavailable, "sandbox %s has ended%s", s.id, reason)
}

// callGuest asks the guest one question and returns its reply, verbatim.
func (s *sandbox) callGuest(ctx context.Context, first []byte) ([]byte, error) {
	result, err := s.openStream(ctx, first)
	if err != nil {
		return nil, err
	}
	select {
	case o := <-result:
		if o.err != nil {
			return nil, o.err
		}
		hangUp(o)
		return o.reply, nil
	case <-ctx.Done():
		safego.Go(func() {
			if o := <-result; o.err == nil {
				hangUp(o)
			}
		})
		return nil, ctx.Err()
	}
}

// hangUp closes a stream without waiting for a guest that does not read.
func hangUp(o opened) {
	safego.Go(func() {
		defer o.release()
		_ = o.stream.Close()
	})
}

// startExec starts a command; it goes on though the caller has stopped waiting, so
// that whoever comes next finds it.
func (s *sandbox) startExec(ctx context.Context, first []byte, o ExecOptions) error {
	var call channel.Call
	if err := channel.DecodeStrictJSON(channel.FrameOpen, first, &call); err != nil {
		return err
	}
	if call.Kind != channel.CallExec || call.Exec == nil || len(call.Exec.Argv) == 0 {
		return fault.Invalid("an exec needs a call of kind %q with a program to run", channel.CallExec)
	}
	if !validID(call.Exec.ID) {
		return fault.Invalid("%q cannot be a command's id: letters, digits, dot, dash and underscore, 1 to 128 of them", text.Shorten(call.Exec.ID, 64))
	}
	o.RingBytes = s.shareOfOutput(o.RingBytes)
	return s.beginCommand(ctx, newKeptCommand(call.Exec, o, s.output), first)
}

// beginCommand asks the guest for a stream of a command, by its first frame, and sets
// its relay going.
func (s *sandbox) beginCommand(ctx context.Context, c *keptCommand, first []byte) error {
	if err := s.reserve(c); err != nil {
		return err
	}
	result, err := s.openStream(context.WithoutCancel(ctx), first)
	if err != nil {
		s.dropCommand(c)
		return err
	}
	replied := make(chan error, 1)
	safego.Go(func() { replied <- safego.Try(func() error { return s.followReply(c, <-result) }) })
	select {
	case err := <-replied:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// followReply looks at the reply to an exec and sets its relay going.
func (s *sandbox) followReply(c *keptCommand, o opened) error {
	if o.err != nil {
		s.dropCommand(c)
		return o.err
	}
	var reply channel.Reply
	err := channel.DecodeJSON(channel.FrameReply, o.reply, &reply)
	if err == nil && !reply.OK {
		err = refusal(reply)
	}
	if err != nil {
		s.dropCommand(c)
		hangUp(o)
		return err
	}
	c.mu.Lock()
	c.stream = o.stream
	kill := c.kept
	c.mu.Unlock()
	close(c.answered)
	if kill != nil {
		safego.Go(func() { s.passKill(c, kill) })
	}
	o.stream.OnGiveUp(c.out.loosen) // whoever reads it slowly misses some
	safego.Go(func() {
		defer o.release()
		c.relayOutput(o.stream, s.session.Done(), s.goneBecause)
		s.pruneCommands()
	})
	return nil
}

// refusal is a guest's no to a command, whose reason is the guest's word.
func refusal(reply channel.Reply) error {
	category := fault.ErrInvalid
	switch reply.Code { //nolint:exhaustive // The others are of files.
	case channel.CodeNotFound:
		category = fault.ErrNotFound
	case channel.CodeExists:
		category = fault.ErrConflict
	}
	return fault.New(category, "the sandbox refused the command: %s", tidyLine(reply.Error))
}
