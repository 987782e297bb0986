package keeper

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// stream opens a stream of the fake guest.
func (s *stage) stream(box string, kind channel.CallKind) net.Conn {
	s.t.Helper()
	conn, reply, err := s.Stream(s.t.Context(), box, channel.Call{Kind: kind})
	s.must(err)
	if !reply.OK || reply.Text != string(kind) {
		s.t.Fatalf("%+v", reply)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Bytes go both ways, more than any buffer between holds, and each half ends by
// itself.
func TestStream(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	var all sync.WaitGroup
	for range 4 {
		conn := s.stream("box", "echo")
		all.Go(func() {
			if _, err := conn.Write(sent); err != nil {
				t.Error(err)
			}
			if err := conn.(*net.UnixConn).CloseWrite(); err != nil { //nolint:forcetypeassert // it is one
				t.Error(err)
			}
		})
		all.Go(func() {
			got, err := io.ReadAll(conn)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d of %d bytes, %v", len(got), len(sent), err)
			}
		})
	}
	all.Wait()
}

func TestStreamRefuses(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	for _, tt := range []struct {
		box  string
		kind channel.CallKind
		want error
	}{
		{"none", "echo", fault.ErrNotFound},
		{"box", channel.CallConfigure, fault.ErrInvalid}, // the guest's own no
		{"box", "oversize", fault.ErrUnavailable},
		{"box", "unknown", fault.ErrUnavailable}, // it closes without an answer
	} {
		conn, reply, err := s.Stream(t.Context(), tt.box, channel.Call{Kind: tt.kind})
		if !errors.Is(err, tt.want) || conn != nil {
			t.Errorf("%s: %v, want %v", tt.kind, err, tt.want)
		}
		if tt.kind == channel.CallConfigure && (reply.OK || !strings.Contains(reply.Error, "such")) {
			t.Errorf("the guest's reply is %+v", reply)
		}
	}
	if n, err := s.stream("box", "leave").Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("a guest that leaves: %d, %v", n, err)
	}
}

// Whatever the guest does on its side, a client that leaves gives its place back:
// more of them come and go than there are places.
func TestStreamsGiveTheirPlaceBack(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	for _, kind := range []channel.CallKind{"deaf", "flood", "echo", "hang"} {
		t.Run(string(kind), func(t *testing.T) {
			for range maxCalls + 20 {
				ctx, cancel := context.WithCancel(t.Context())
				if kind == "hang" {
					go cancel()
				}
				conn, _, err := s.Stream(ctx, "box", channel.Call{Kind: kind})
				for errors.Is(err, fault.ErrUnavailable) && kind != "hang" && t.Context().Err() == nil { // the last ones are still leaving
					conn, _, err = s.Stream(ctx, "box", channel.Call{Kind: kind})
				}
				cancel()
				if kind == "hang" {
					continue
				}
				s.must(err)
				if kind == "deaf" { // past every buffer, so that the keeper is in the middle
					go func() { _, _ = conn.Write(make([]byte, 8<<20)) }()
				}
				s.must(conn.Close())
			}
		})
	}
	s.eventually("a place is free", func() bool {
		_, err := s.Call(t.Context(), "box", channel.Call{Kind: channel.CallPing})
		return err == nil
	})
}

// There are no more streams than places, and the end of the sandbox ends them.
func TestStreamsAreCalls(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	for range maxCalls {
		s.stream("box", "deaf")
	}
	if _, _, err := s.Stream(t.Context(), "box", channel.Call{Kind: "echo"}); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("one more: %v", err)
	}
	s.launch("other", "guest") // the other sandbox is not concerned
	conn := s.stream("other", "echo")
	s.must(s.Kill(t.Context(), "other"))
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the end of the sandbox: %v", err)
	}
}

// TestDialsAreNoCalls: connections to ports, which strangers bring about, have slots of their own, so that
// a command and a call go on when they have them all, and the other way round.
func TestDialsAreNoCalls(t *testing.T) {
	for first, then := range map[channel.CallKind]channel.CallKind{channel.CallDial: "deaf", "deaf": channel.CallDial} {
		t.Run(string(first), func(t *testing.T) {
			s := newStage(t)
			s.launch("box", "guest")
			most := map[bool]int{true: maxDials, false: maxCalls}[first == channel.CallDial]
			for range most {
				s.stream("box", first)
			}
			if _, _, err := s.Stream(t.Context(), "box", channel.Call{Kind: first}); !errors.Is(err, fault.ErrUnavailable) {
				t.Errorf("the control: one more than %d: %v", most, err)
			}
			if _, _, err := s.Stream(t.Context(), "box", channel.Call{Kind: then}); err != nil {
				t.Errorf("%q has no slot: %v", then, err)
			}
		})
	}
}

// TestFreezesAreNoCalls: a guest hears of a freeze and a thaw however many commands, calls and connections to ports
// it has, so that none is taken for one that does not answer.
func TestFreezesAreNoCalls(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	for kind, most := range map[channel.CallKind]int{"deaf": maxCalls, channel.CallDial: maxDials} {
		for range most {
			s.stream("box", kind)
		}
	}
	for range maxFreezes / 2 { // a slot is given back a moment later
		for _, kind := range []channel.CallKind{channel.CallHold, channel.CallResume} {
			if _, err := s.Call(t.Context(), "box", channel.Call{Kind: kind}); err != nil {
				t.Fatalf("%q: %v", kind, err)
			}
		}
	}
}

// A stream outlives a stop of the guest (a freeze in place), and what was on its
// way arrives.
func TestStreamOverAFreeze(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	conn := s.stream("box", "echo")
	s.must(s.Freeze(t.Context(), Freeze{ID: "box"}))
	if _, err := conn.Write([]byte("while frozen")); err != nil {
		t.Fatal(err)
	}
	s.must(s.Thaw(t.Context(), Launch{ID: "box"}))
	got := make([]byte, 12)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "while frozen" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSend(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "cat", ExecOptions{}, "cat")
	ctx := t.Context()
	s.must(s.Send(ctx, "box", "cat", channel.FrameStdin, []byte("hello ")))
	s.must(s.Send(ctx, "box", "cat", channel.FrameResize, []byte(`{"rows":1,"cols":2}`)))
	s.must(s.Send(ctx, "box", "cat", channel.FrameStdin, bytes.Repeat([]byte("x"), channel.MaxPayload)))
	s.must(s.Send(ctx, "box", "cat", channel.FrameSignal, []byte(`{"name":"USR1"}`)))
	o := s.result("box", "cat")
	if o.out.Len() != 6+channel.MaxPayload || o.errs.String() != `{"rows":1,"cols":2}` || o.exit.Signal != "USR1" || o.pid != 7 {
		t.Errorf("%d bytes, %q, %+v, pid %d", o.out.Len(), &o.errs, o.exit, o.pid)
	}
	for _, tt := range []struct {
		box, command string
		kind         channel.FrameType
		payload      []byte
		want         error
	}{
		{"box", "cat", channel.FrameStdin, []byte("late"), fault.ErrConflict},
		{"box", "none", channel.FrameStdin, []byte("x"), fault.ErrNotFound},
		{"none", "cat", channel.FrameStdin, []byte("x"), fault.ErrNotFound},
		{"box", "cat", channel.FrameStdout, []byte("x"), fault.ErrInvalid},
		{"box", "cat", channel.FrameOpen, []byte("{}"), fault.ErrInvalid},
		{"box", "cat", channel.FrameStdin, make([]byte, channel.MaxPayload+1), fault.ErrInvalid},
	} {
		if err := s.Send(ctx, tt.box, tt.command, tt.kind, tt.payload); !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v", tt.kind, err)
		}
	}
}

// A command that takes nothing holds up who sends to it, and nobody else.
func TestSendToADeafCommand(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "deaf", ExecOptions{}, "deaf")
	s.run("box", "cat", ExecOptions{}, "cat")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var filled atomic.Int64
	stuck := make(chan error, 1)
	go func() {
		for filled.Load() < 4*channel.GuestWindow {
			if err := s.Send(ctx, "box", "deaf", channel.FrameStdin, make([]byte, channel.MaxPayload)); err != nil {
				stuck <- err
				return
			}
			filled.Add(channel.MaxPayload)
		}
		stuck <- errors.New("the window has no end")
	}()
	s.eventually("the window is nearly full", func() bool { return filled.Load() >= 3*channel.MaxPayload })
	s.must(s.Send(t.Context(), "box", "cat", channel.FrameStdin, nil))
	if o := s.result("box", "cat"); o.exit.Code != 0 {
		t.Errorf("%+v", o.exit)
	}
	cancel()
	if err := <-stuck; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The pid is known as soon as the guest says it, and comes first; a command that
// could not be started has none.
func TestStarted(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "cat", ExecOptions{}, "cat")
	conn := s.attach("box", "cat", Tail)
	kind, payload, err := conn.ReadFrame()
	if err != nil || kind != channel.FrameStarted || string(payload) != `{"pid":7}` {
		t.Fatalf("type %d, %q, %v", kind, payload, err)
	}
	box, err := s.Get(t.Context(), "box")
	if err != nil || len(box.Commands) != 1 || box.Commands[0].PID != 7 {
		t.Errorf("%+v, %v", box.Commands, err)
	}
	s.run("box", "silent", ExecOptions{}, "silent")
	if o := s.result("box", "silent"); o.pid != 0 || o.exit.Code != 127 {
		t.Errorf("pid %d, %+v", o.pid, o.exit)
	}
}

// FromNow is behind what there is, and before what comes.
func TestAttachFromNow(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "cat", ExecOptions{}, "cat")
	s.must(s.Send(t.Context(), "box", "cat", channel.FrameStdin, []byte("before")))
	s.eventually("the command has said it", func() bool {
		box, err := s.Get(t.Context(), "box")
		return err == nil && box.Commands[0].Offset == 6
	})
	conn := s.attach("box", "cat", FromNow)
	s.must(s.Send(t.Context(), "box", "cat", channel.FrameStdin, []byte("after")))
	s.must(s.Send(t.Context(), "box", "cat", channel.FrameStdin, nil))
	if o := s.collect(conn); o.out.String() != "after" || o.gap != 0 || o.pid != 7 {
		t.Errorf("%q, gap %d, pid %d", &o.out, o.gap, o.pid)
	}
	conn = s.attach("box", "cat", FromNow) // of one that has ended only the exit comes
	if o := s.collect(conn); o.out.Len() != 0 {
		t.Errorf("%q", &o.out)
	}
}

// A stopped guest answers nobody, and who gives up is let go.
func TestStreamOfAStoppedGuest(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.must(s.Signal(t.Context(), "box", int(syscall.SIGSTOP)))
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if _, _, err := s.Stream(ctx, "box", channel.Call{Kind: "echo"}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	s.must(s.Signal(t.Context(), "box", int(syscall.SIGCONT)))
	s.eventually("the guest is back", func() bool {
		conn, _, err := s.Stream(t.Context(), "box", channel.Call{Kind: "echo"})
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}
