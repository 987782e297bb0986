package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestExits(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	tests := []struct {
		argv string
		code int
		text string
	}{
		{"code 0", 0, ""},
		{"code 3", 3, ""},
		{"hangup", 137, "no exit status"},
		{"gap", 137, "does not send this type"},
		{"huge", 137, "longer than"},
		{"badexit", 137, "not the JSON"},
		{"rudeexit", 0, "zzzz"},
	}
	for _, tt := range tests {
		t.Run(tt.argv, func(t *testing.T) {
			id := strings.Fields(tt.argv)[0] + tt.argv[len(tt.argv)-1:]
			s.run("box", id, ExecOptions{}, strings.Fields(tt.argv)...)
			o := s.result("box", id)
			if o.exit.Code != tt.code || !strings.Contains(o.exit.Error, tt.text) {
				t.Errorf("%+v", o.exit)
			}
			if strings.ContainsAny(o.exit.Error, "\x1b\x07\n") || len(o.exit.Error) > 2*maxErrorText {
				t.Errorf("untidy: %d bytes, %q", len(o.exit.Error), o.exit.Error)
			}
		})
	}
	// After all of that the sandbox is as it was.
	s.run("box", "last", ExecOptions{}, "echo", "still here")
	if o := s.result("box", "last"); o.out.String() != "still here" {
		t.Errorf("%q", &o.out)
	}
}

func TestExecRefuses(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "taken", ExecOptions{}, "deaf")
	for _, tt := range []struct {
		box  string
		exec channel.Exec
		want error
	}{
		{"box", channel.Exec{ID: "taken", Argv: []string{"echo"}}, fault.ErrConflict},
		{"box", channel.Exec{ID: "x", Argv: []string{"refuse"}}, fault.ErrInvalid},
		{"box", channel.Exec{ID: "x"}, fault.ErrInvalid},
		{"box", channel.Exec{ID: "", Argv: []string{"echo"}}, fault.ErrInvalid},
		{"box", channel.Exec{ID: "a/b", Argv: []string{"echo"}}, fault.ErrInvalid},
		{"none", channel.Exec{ID: "x", Argv: []string{"echo"}}, fault.ErrNotFound},
		{"none", channel.Exec{ID: "x", Argv: []string{strings.Repeat("x", 200_000)}}, fault.ErrNotFound},
		{"box", channel.Exec{ID: "x", Argv: []string{strings.Repeat("x", channel.MaxJSON)}}, fault.ErrInvalid},
	} {
		if err := s.Exec(t.Context(), tt.box, tt.exec, ExecOptions{}); !errors.Is(err, tt.want) {
			t.Errorf("%s, %s: %v, want %v", tt.box, tt.exec.ID, err, tt.want)
		}
	}
	if _, err := s.Attach(t.Context(), "box", "x", 0); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("a refused command was kept: %v", err)
	}
	for _, offset := range []int64{-1, 1} {
		if _, err := s.Attach(t.Context(), "box", "taken", offset); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("attach at %d: %v", offset, err)
		}
	}
}

func TestCall(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	reply, err := s.Call(t.Context(), "box", channel.Call{Kind: channel.CallInventory})
	if err != nil || len(reply.Body) != 190_000 {
		t.Errorf("%d bytes, %v", len(reply.Body), err)
	}
	_, err = s.Call(t.Context(), "box", channel.Call{Kind: channel.CallConfigure, Configure: &channel.Configure{CAPEM: make([]byte, 150_000)}})
	if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "such host") || strings.ContainsAny(err.Error(), "\x1b\n") || len(err.Error()) > 3000 {
		t.Errorf("%v", err)
	}
	if _, err := s.Call(t.Context(), "box", channel.Call{Kind: "oversize"}); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("an oversize reply: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := s.Call(ctx, "box", channel.Call{Kind: "hang"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call given up: %v", err)
	}
}

// TestFrozenGuest: nothing that a client asks of a guest that has stopped
// blocks another client, and the sandbox is as before when it goes on.
func TestFrozenGuest(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "cat", ExecOptions{}, "cat")
	s.must(s.Signal(t.Context(), "box", int(syscall.SIGSTOP)))
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if _, err := s.Call(ctx, "box", channel.Call{Kind: channel.CallPing}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	conn := s.attach("box", "cat", 0)
	s.must(conn.WriteFrame(channel.FrameStdin, []byte("while frozen")))
	s.must(conn.WriteFrame(channel.FrameStdin, nil))
	s.must(s.Signal(t.Context(), "box", int(syscall.SIGCONT)))
	if o := s.collect(conn); o.out.String() != "while frozen" {
		t.Errorf("%q", &o.out)
	}
	_, err := s.Call(t.Context(), "box", channel.Call{Kind: channel.CallPing})
	s.must(err)
}

// TestAMuteGuest never serves its end of the wire.
func TestAMuteGuest(t *testing.T) {
	s := newStage(t)
	s.launch("box", "mute")
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if err := s.Exec(ctx, "box", channel.Exec{ID: "x", Argv: []string{"echo"}}, ExecOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := s.Forget(t.Context(), "box"); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("got %v", err)
	}
	s.must(s.Kill(t.Context(), "box"))
	s.must(s.Forget(t.Context(), "box"))
}

func TestCapCountsExactly(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	const each, keep = 60_000, 20_001
	s.run("box", "capped", ExecOptions{CapBytes: keep}, "both", fmt.Sprint(each))
	o := s.result("box", "capped")
	if o.out.Len() != keep || o.errs.Len() != keep || o.gap != 0 {
		t.Errorf("%d and %d bytes, a gap of %d", o.out.Len(), o.errs.Len(), o.gap)
	}
	if !o.exit.Truncated || o.exit.StdoutBytes != each || o.exit.StderrBytes != each {
		t.Errorf("%+v", o.exit)
	}
	s.run("box", "whole", ExecOptions{CapBytes: each}, "both", fmt.Sprint(each))
	if o := s.result("box", "whole"); o.exit.Truncated || o.out.Len() != each || o.errs.Len() != each {
		t.Errorf("exactly the cap: %+v, %d, %d", o.exit, o.out.Len(), o.errs.Len())
	}
}

// TestFloodWithoutReaders: nobody is attached; the newest is kept, the rest a
// gap, and the keeper does not grow by the flood.
func TestFloodWithoutReaders(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	const size, ring = 200 << 20, 64 << 10
	s.run("box", "flood", ExecOptions{RingBytes: ring}, "flood", fmt.Sprint(size))
	s.eventually("the flood has ended", func() bool {
		box, err := s.Get(t.Context(), "box")
		s.must(err)
		return box.Commands[0].Exit != nil
	})
	o := s.result("box", "flood")
	if o.out.Len() != ring || o.gap != size-ring || o.exit.StdoutBytes != size || o.exit.Truncated {
		t.Errorf("%d bytes, a gap of %d, %+v", o.out.Len(), o.gap, o.exit)
	}
	for i, b := range o.out.Bytes() {
		if b != pattern(size-ring+int64(i)) {
			t.Fatalf("byte %d is wrong", i)
		}
	}
	from := s.attach("box", "flood", size-10)
	if o := s.collect(from); o.out.Len() != 10 || o.gap != 0 {
		t.Errorf("from an offset: %d bytes, a gap of %d", o.out.Len(), o.gap)
	}
}

// progress asks the guest what it has written in floods and read as input.
func (s *stage) progress(box string) (written, taken int64) {
	s.t.Helper()
	reply, err := s.Call(s.t.Context(), box, channel.Call{Kind: channel.CallPing})
	s.must(err)
	var both []int64
	s.must(json.Unmarshal([]byte(reply.Text), &both))
	return both[0], both[1]
}

// steady returns the guest's counter once it has stood still for 100 rounds.
func (s *stage) steady(count func() int64) int64 {
	s.t.Helper()
	last, same := count(), 0
	for same < 100 {
		now := count()
		if now != last {
			last, same = now, 0
			continue
		}
		same++
	}
	return last
}

// TestAReaderThatDoesNotReadHoldsTheGuestBack, and what it lets through is
// bounded by the ring, the window and the buffers of its socket.
func TestAReaderThatDoesNotReadHoldsTheGuestBack(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	const size, ring = 64 << 20, 64 << 10
	s.run("box", "flood", ExecOptions{RingBytes: ring}, "cat")
	// Attach first, then start: the command waits for its input.
	conn := s.attach("box", "flood", 0)
	payload := make([]byte, channel.MaxPayload)
	for i := range payload {
		payload[i] = pattern(int64(i))
	}
	feeder := s.attach("box", "flood", 0)
	go func() { // feeds, and reads nothing: holds back and is held back
		for range size / len(payload) {
			if feeder.WriteFrame(channel.FrameStdin, payload) != nil {
				return
			}
		}
		_ = feeder.WriteFrame(channel.FrameStdin, nil)
	}()
	taken := s.steady(func() int64 { _, n := s.progress("box"); return n })
	const most = ring + channel.HostWindow + 2<<20
	if taken == 0 || taken > most {
		t.Errorf("the guest took %d bytes of %d, though nobody reads; at most %d are in buffers", taken, size, most)
	}
	t.Logf("%d KiB went through to a reader that does not read", taken>>10)
	go func() { _ = s.collect(feeder) }()
	o := s.collect(conn)
	if o.out.Len() != size || o.gap != 0 {
		t.Errorf("then %d of %d bytes came, a gap of %d", o.out.Len(), size, o.gap)
	}
	for i, b := range o.out.Bytes() {
		if b != pattern(int64(i%len(payload))) {
			t.Fatalf("byte %d is wrong", i)
		}
	}
}

// TestTheGuestHoldsTheClientBack: input that the guest does not read stays
// with the client, but for the windows.
func TestTheGuestHoldsTheClientBack(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "deaf", ExecOptions{}, "deaf")
	conn := s.attach("box", "deaf", 0)
	payload, sent := make([]byte, channel.MaxPayload), make(chan int64)
	go func() {
		var n int64
		for conn.WriteFrame(channel.FrameStdin, payload) == nil {
			n += int64(len(payload))
			if n > 1<<30 {
				break
			}
			select {
			case sent <- n:
			case <-t.Context().Done():
				return
			}
		}
		close(sent)
	}()
	var n int64
	for still := 0; still < 200; {
		select {
		case n = <-sent:
			still = 0
		default:
			s.progress("box")
			still++
		}
	}
	const most = channel.GuestWindow + 2<<20
	if n == 0 || n > most {
		t.Errorf("%d bytes were taken for a command that reads none; at most %d are in windows", n, most)
	}
	t.Logf("%d KiB of input went through to a command that does not read", n>>10)
	_ = conn.Raw().Close()
}

func TestSeveralReadersEachTheirOwnPlace(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "c", ExecOptions{}, "cat")
	one := s.attach("box", "c", 0)
	s.must(one.WriteFrame(channel.FrameStdin, []byte("abcdef")))
	if _, p, err := s.said(one); err != nil || string(p) != "abcdef" {
		t.Fatalf("%q, %v", p, err)
	}
	two, three := s.attach("box", "c", 2), s.attach("box", "c", 6)
	s.must(two.WriteJSON(channel.FrameResize, channel.WindowSize{Rows: 1, Cols: 2}))
	s.must(three.WriteJSON(channel.FrameSignal, channel.Signal{Name: "TERM"}))
	const size = `{"rows":1,"cols":2}`
	for _, tt := range []struct {
		conn *channel.Conn
		out  string
	}{{one, ""}, {two, "cdef"}, {three, ""}} {
		if o := s.collect(tt.conn); o.out.String() != tt.out || o.errs.String() != size && o.errs.Len() != 0 || o.exit.Signal != "TERM" {
			t.Errorf("%q, %q, %+v", &o.out, &o.errs, o.exit)
		}
	}
}

func TestClientsThatBreakTheProtocolLoseOnlyTheirConnection(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "c", ExecOptions{}, "cat")
	bad := s.attach("box", "c", 0)
	s.must(bad.WriteFrame(channel.FrameExit, []byte("{}")))
	kind, _, err := bad.ReadFrame()
	if err == nil && kind == channel.FrameStarted { // it had been sent before
		_, _, err = bad.ReadFrame()
	}
	if err == nil {
		t.Error("an attachment may send an exit")
	}
	for _, wire := range []string{"garbage!!", "\x01\x00\x00\x00\x02{}", "\x01\x00\x00\x00\x18{\"verb\":\"ping\",\"more\":1}", "\x01\x00\x00\x00\x11{\"verb\":\"rm -rf\"}"} {
		l, err := s.connectKeeper(t.Context())
		s.must(err)
		_, err = l.Raw().Write([]byte(wire))
		s.must(err)
		if _, err := l.receiveResponse(); err == nil {
			t.Errorf("%q was accepted", wire)
		}
		l.closeLink()
	}
	good := s.attach("box", "c", 0)
	s.must(good.WriteFrame(channel.FrameStdin, nil))
	s.collect(good)
}

// TestTheEndOfASandboxEndsItsCommands, however it ends.
func TestTheEndOfASandboxEndsItsCommands(t *testing.T) {
	s := newStage(t)
	for _, how := range []string{"die", "garbage", "kill"} {
		t.Run(how, func(t *testing.T) {
			s.launch(how, "guest")
			s.run(how, "c", ExecOptions{}, "cat")
			s.run(how, "flood", ExecOptions{RingBytes: minRing}, "flood", fmt.Sprint(1<<40))
			stuck := s.attach(how, "flood", 0) // reads nothing
			conn := s.attach(how, "c", 0)
			s.must(conn.WriteFrame(channel.FrameStdin, []byte("x")))
			if _, _, err := conn.ReadFrame(); err != nil {
				t.Fatal(err)
			}
			if how == "kill" {
				s.must(s.Kill(t.Context(), how))
			} else {
				err := s.Exec(t.Context(), how, channel.Exec{ID: "end", Argv: []string{how, "5"}}, ExecOptions{})
				if err != nil && !errors.Is(err, fault.ErrUnavailable) { // its yes and its end may cross
					t.Error(err)
				}
			}
			if o := s.collect(conn); o.exit.Code != 137 || o.exit.Error != "the sandbox ended" {
				t.Errorf("%+v", o.exit)
			}
			exit, err := s.Wait(t.Context(), how)
			s.must(err)
			if want := map[string]int{"die": 5, "garbage": 0, "kill": 137}[how]; exit.Code != want {
				t.Errorf("%+v", exit)
			}
			s.eventually("the flood has its exit though its reader is stuck", func() bool {
				box, err := s.Get(t.Context(), how)
				s.must(err)
				return box.Commands[1].Exit != nil && !box.Alive
			})
			_ = stuck.Raw().Close()
			s.must(s.Forget(t.Context(), how))
		})
	}
}

func TestAGuestThatIsNoGuest(t *testing.T) {
	s := newStage(t)
	s.launch("box", "garbage")
	s.eventually("it is over", func() bool {
		err := s.Exec(t.Context(), "box", channel.Exec{ID: "x", Argv: []string{"echo"}}, ExecOptions{})
		if !errors.Is(err, fault.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
		box, err := s.Get(t.Context(), "box")
		s.must(err)
		return !box.Alive
	})
}

func TestEndedCommandsArePruned(t *testing.T) {
	s := newStage(t, func(c *Config) { c.EndedCommands = 3 })
	s.launch("box", "guest")
	s.run("box", "lives", ExecOptions{}, "deaf")
	for i := range 8 {
		id := fmt.Sprintf("c%d", i)
		s.run("box", id, ExecOptions{}, "echo", id)
		s.result("box", id)
	}
	var ids []string
	s.eventually("the last is settled", func() bool {
		box, err := s.Get(t.Context(), "box")
		s.must(err)
		ids = nil
		for _, c := range box.Commands {
			ids = append(ids, c.ID)
		}
		return len(ids) <= 4
	})
	if got := strings.Join(ids, " "); got != "lives c5 c6 c7" {
		t.Errorf("kept %s", got)
	}
}

func TestTooManyCommands(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	for i := range maxCalls {
		s.run("box", fmt.Sprint(i), ExecOptions{}, "cat")
	}
	if err := s.Exec(t.Context(), "box", channel.Exec{ID: "more", Argv: []string{"cat"}}, ExecOptions{}); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	conn := s.attach("box", "0", 0)
	s.must(conn.WriteFrame(channel.FrameStdin, nil))
	s.collect(conn)
	s.eventually("the slot is back", func() bool {
		return s.Exec(t.Context(), "box", channel.Exec{ID: "more", Argv: []string{"cat"}}, ExecOptions{}) == nil
	})
}
