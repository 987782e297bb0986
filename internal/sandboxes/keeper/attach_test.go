package keeper

import (
	"errors"
	"net"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestClientsWhoFollowCommandsAreBounded: whoever follows a command has the keeper keep a connection, buffers
// and goroutines, and all sandboxes end with the keeper. So a sandbox has so many at most, of all of its
// commands; the daemon, which hears of each command's end, another sandbox's clients, and a kill are none of
// these.
func TestClientsWhoFollowCommandsAreBounded(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.launch("other", "guest")
	for _, id := range []string{"one", "two"} {
		s.run("box", id, ExecOptions{}, "cat")
	}
	s.run("other", "three", ExecOptions{}, "cat")
	var all []net.Conn
	defer func() {
		for _, conn := range all {
			_ = conn.Close()
		}
	}()
	for i := range maxFollows {
		conn, err := s.Attach(t.Context(), "box", []string{"one", "two"}[i%2], []int64{0, FromNow}[i/2%2])
		if err != nil {
			t.Fatalf("the %dth of %d: %v", i+1, maxFollows, err)
		}
		all = append(all, conn)
	}
	for _, offset := range []int64{0, FromNow} {
		conn, err := s.Attach(t.Context(), "box", "one", offset)
		if err == nil {
			_ = conn.Close()
		}
		if !errors.Is(err, fault.ErrExhausted) || err.Error() != "sandbox box has 256 clients that follow commands already; end one of these first" {
			t.Errorf("one more, from %d: %v", offset, err)
		}
	}
	tail, err := s.Attach(t.Context(), "box", "one", Tail)
	s.must(err)
	defer tail.Close()
	neighbour := s.attach("other", "three", 0)
	if kind, _, err := neighbour.ReadFrame(); err != nil || kind != channel.FrameStarted {
		t.Errorf("another sandbox's: %d %v", kind, err)
	}
	_ = all[0].Close()
	s.eventually("the next one has the place of one that left", func() bool {
		conn, err := s.Attach(t.Context(), "box", "one", 0)
		if err == nil {
			all = append(all, conn)
		}
		return err == nil
	})
	s.must(s.Kill(t.Context(), "box")) // which no client keeps from that
}

// TestClientsWhoseInputWaitsAreBounded: so with those who send input to a command that takes none.
func TestClientsWhoseInputWaitsAreBounded(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "it", ExecOptions{}, "deaf")
	refused := make(chan error, 1)
	for range maxInputs + 1 {
		go func() {
			for {
				if err := s.Send(t.Context(), "box", "it", channel.FrameStdin, make([]byte, channel.MaxPayload)); err != nil {
					select {
					case refused <- err:
					default:
					}
					return
				}
			}
		}()
	}
	if err := <-refused; !errors.Is(err, fault.ErrExhausted) {
		t.Error(err)
	}
}
