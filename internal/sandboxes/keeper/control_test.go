package keeper

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const killAll = `{"name":"KILL","tree":true}`

// fill sends input to a command that reads none until the keeper's client waits, and returns
// what becomes of that.
func (s *stage) fill(ctx context.Context, command string) <-chan error {
	s.t.Helper()
	var filled atomic.Int64
	stuck := make(chan error, 1)
	go func() {
		for {
			if err := s.Send(ctx, "box", command, channel.FrameStdin, make([]byte, channel.MaxPayload)); err != nil {
				stuck <- err
				return
			}
			filled.Add(channel.MaxPayload)
		}
	}()
	s.eventually("the window is nearly full", func() bool { return filled.Load() >= 3*channel.MaxPayload })
	return stuck
}

// A signal is a call of its own: it waits neither for the command's input, by Send or by the
// attachment of another, nor for its output, nor for a place among the sandbox's calls.
func TestAKillWaitsBehindNothing(t *testing.T) {
	for name, wait := range map[string]struct{ input, calls bool }{
		"nothing": {}, "input": {input: true}, "as many calls as there may be": {calls: true}, "both": {true, true},
	} {
		for _, route := range []string{"Send", "an attachment"} {
			t.Run(name+"/"+route, func(t *testing.T) {
				s := newStage(t)
				s.launch("box", "guest")
				s.run("box", "it", ExecOptions{}, "controlled")
				conn := s.attach("box", "it", 0)
				s.eventually("it runs", func() bool {
					box, err := s.Get(t.Context(), "box")
					return err == nil && box.Commands[0].Offset == 5
				})
				var stuck <-chan error
				if wait.input {
					stuck = s.fill(t.Context(), "it")
				}
				if wait.calls {
					for i := 1; i < maxCalls; i++ {
						s.run("box", "c"+strconv.Itoa(i), ExecOptions{}, "deaf")
					}
					if err := s.Exec(t.Context(), "box", channel.Exec{ID: "more", Argv: []string{"deaf"}}, ExecOptions{}); !errors.Is(err, fault.ErrUnavailable) {
						t.Fatalf("the control: %v", err)
					}
				}
				if route == "Send" {
					s.must(s.Send(t.Context(), "box", "it", channel.FrameSignal, []byte(killAll)))
				} else {
					s.must(conn.WriteFrame(channel.FrameSignal, []byte(killAll)))
				}
				if o := s.collect(conn); o.exit.Signal != "KILL" {
					t.Errorf("%+v", o.exit)
				}
				if stuck == nil {
					return
				}
				if err := <-stuck; !errors.Is(err, fault.ErrConflict) { // what waited is dropped
					t.Errorf("the input that waited: %v", err)
				}
			})
		}
	}
}

// Nothing that an agent has not confirmed is told as done.
func TestASignalThatIsNotConfirmed(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "mute", ExecOptions{}, "controlled")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Send(ctx, "box", "mute", channel.FrameSignal, []byte(killAll)); !errors.Is(err, context.Canceled) {
		t.Errorf("of who does not wait: %v", err)
	}
	var slots []error
	box := &sandbox{id: "box"}
	c := &keptCommand{id: "mute"}
	late, over := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer over()
	slots = append(slots, box.unconfirmed(t.Context(), c, late.Err()), box.unconfirmed(late, c, late.Err()), box.unconfirmed(t.Context(), c, nil))
	if !errors.Is(slots[0], fault.ErrUnavailable) || !strings.Contains(slots[0].Error(), "end the sandbox to be sure") {
		t.Errorf("of a guest that is too late: %v", slots[0])
	}
	if !errors.Is(slots[1], context.DeadlineExceeded) || slots[2] != nil {
		t.Errorf("of a caller whose time is over, and of none: %v", slots[1:])
	}
}

// An agent of before the call gets its signals as it always has; one in a frozen sandbox gets
// none, and nobody is told that it had.
func TestSignalsOfOlderAndOfFrozenAgents(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "cat", ExecOptions{}, "cat")
	s.must(s.Freeze(t.Context(), Freeze{ID: "box"}))
	if err := s.Send(t.Context(), "box", "cat", channel.FrameSignal, []byte(killAll)); !errors.Is(err, fault.ErrConflict) || !strings.Contains(fmt.Sprint(err), "frozen") {
		t.Errorf("while frozen: %v", err)
	}
	s.must(s.attach("box", "cat", Tail).WriteFrame(channel.FrameResize, []byte(`{"rows":1,"cols":2}`)))
	s.must(s.Thaw(t.Context(), Launch{ID: "box"}))
	s.eventually("the size, which waited for the thaw, is there", func() bool {
		box, err := s.Get(t.Context(), "box")
		return err == nil && box.Commands[0].Offset > 0
	})
	s.must(s.Send(t.Context(), "box", "cat", channel.FrameSignal, []byte(killAll)))
	if o := s.result("box", "cat"); o.exit.Signal != "KILL" || o.errs.String() != `{"rows":1,"cols":2}` {
		t.Errorf("%+v, %q", o.exit, &o.errs)
	}
	for _, bad := range []string{"", "{", `{"name":"KILL"} x`} {
		if err := s.Send(t.Context(), "box", "cat", channel.FrameSignal, []byte(bad)); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// An agent of before the call says nothing of signals: that it took one which kills is no word
// that the command is gone.
func TestAnOlderAgentsKillIsNotTakenForGranted(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "it", ExecOptions{}, "heedless")
	s.must(s.Send(t.Context(), "box", "it", channel.FrameSignal, []byte(`{"name":"TERM"}`))) // the control
	for _, kill := range []string{killAll, `{"name":"SIGKILL"}`} {
		ctx, cancel := context.WithCancel(t.Context())
		before := s.told("box")
		sent := make(chan error, 1)
		go func() { sent <- s.Send(ctx, "box", "it", channel.FrameSignal, []byte(kill)) }()
		s.eventually("the agent has taken it", func() bool { return s.told("box") > before })
		cancel()
		if err := <-sent; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, and the command runs", kill, err)
		}
	}
}

// told is how much the only command of a sandbox has written.
func (s *stage) told(id string) int64 {
	box, err := s.Get(s.t.Context(), id)
	s.must(err)
	return box.Commands[0].Offset
}
