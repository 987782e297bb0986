package keeper

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// withGuest is a sandbox in this process, and its guest's end of the channel.
func withGuest(t *testing.T) (*sandbox, *channel.Session) {
	t.Helper()
	near, file, err := channel.SocketPair()
	if err != nil {
		t.Fatal(err)
	}
	far, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		t.Fatal(err)
	}
	session, err := channel.NewHostSession(near)
	if err != nil {
		t.Fatal(err)
	}
	guest, err := channel.NewGuestSession(far)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = guest.Close(), session.Close()
		_, _ = near.Close(), far.Close()
	})
	return &sandbox{id: "box", log: slog.New(slog.DiscardHandler), session: session, refusals: newRefusals(), calls: make(chan struct{}, 1), controls: make(chan struct{}, 1)}, guest
}

// TestAKillBeforeTheStartIsAnswered is kept: whoever sent it may have gone when the guest says yes to the
// command. The control is another signal, of which nothing is kept.
func TestAKillBeforeTheStartIsAnswered(t *testing.T) {
	for _, name := range []string{"KILL", "TERM"} {
		t.Run(name, func(t *testing.T) {
			box, guest := withGuest(t)
			begun := make(chan error, 1)
			c := newKeptCommand(&channel.Exec{ID: "it", Argv: []string{"x"}}, ExecOptions{}, nil)
			go func() { begun <- box.beginCommand(t.Context(), c, []byte(`{"kind":"exec"}`)) }()
			exec, err := guest.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := exec.ReadFrame(); err != nil { // it takes its time to answer
				t.Fatal(err)
			}
			gone, leave := context.WithCancel(t.Context())
			leave()
			if err := box.control(gone, c, channel.FrameSignal, []byte(`{"name":"`+name+`","tree":true}`)); !errors.Is(err, context.Canceled) {
				t.Fatalf("whoever does not wait is told %v", err)
			}
			if err := exec.WriteJSON(channel.FrameReply, channel.Reply{OK: true}); err != nil {
				t.Fatal(err)
			}
			if err := <-begun; err != nil {
				t.Fatal(err)
			}
			if name == "KILL" {
				control, err := guest.Accept()
				if err != nil {
					t.Fatal(err)
				}
				var call channel.Call
				if err := control.ReadJSON(channel.FrameOpen, &call); err != nil || call.Control == nil || call.Control.Command != "it" ||
					call.Control.Signal == nil || call.Control.Signal.Name != "KILL" || !call.Control.Signal.Tree {
					t.Errorf("the guest is asked for %+v, %v", call, err)
				}
				if err := control.WriteJSON(channel.FrameReply, channel.Reply{OK: true}); err != nil {
					t.Fatal(err)
				}
				_ = control.Close()
			}
			if err := exec.WriteJSON(channel.FrameExit, channel.Exit{Code: 137}); err != nil {
				t.Fatal(err)
			}
			<-c.done
			_ = exec.Close()
			_ = box.session.Close()
			if _, err := guest.Accept(); err == nil {
				t.Error("the guest is asked for something else")
			}
		})
	}
}

// TestAKillBeforeTheStartIsAnsweredIsDoneOnce: whoever waits for it is told of the one that is kept, and not that the
// command has ended of it. Of several kills the one of the whole tree is kept.
func TestAKillBeforeTheStartIsAnsweredIsDoneOnce(t *testing.T) {
	box, guest := withGuest(t)
	begun, killed := make(chan error, 1), make(chan error, 1)
	c := newKeptCommand(&channel.Exec{ID: "it", Argv: []string{"x"}}, ExecOptions{}, nil)
	go func() { begun <- box.beginCommand(t.Context(), c, []byte(`{"kind":"exec"}`)) }()
	exec, err := guest.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := exec.ReadFrame(); err != nil {
		t.Fatal(err)
	}
	go func() { killed <- box.control(t.Context(), c, channel.FrameSignal, []byte(killAll)) }()
	for isKept := false; !isKept && t.Context().Err() == nil; {
		c.mu.Lock()
		isKept = c.kept != nil
		c.mu.Unlock()
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := box.control(gone, c, channel.FrameSignal, []byte(`{"name":"KILL"}`)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := exec.WriteJSON(channel.FrameReply, channel.Reply{OK: true}); err != nil {
		t.Fatal(err)
	}
	control, err := guest.Accept()
	if err != nil {
		t.Fatal(err)
	}
	var call channel.Call
	if err := control.ReadJSON(channel.FrameOpen, &call); err != nil || !call.Control.Signal.Tree {
		t.Errorf("the guest is asked for %+v, %v", call, err)
	}
	if err := exec.WriteJSON(channel.FrameExit, channel.Exit{Code: 137, Signal: "KILL"}); err != nil {
		t.Fatal(err)
	}
	<-c.done // of the kill, before its answer
	if err := control.WriteJSON(channel.FrameReply, channel.Reply{OK: true}); err != nil {
		t.Fatal(err)
	}
	_ = control.Close()
	if err := <-killed; err != nil {
		t.Errorf("whoever killed it is told %v", err)
	}
	if <-c.kept.done; c.kept.err != nil {
		t.Errorf("the one that is kept: %v", c.kept.err)
	}
	if err := <-begun; err != nil {
		t.Error(err)
	}
	_ = exec.Close()
	_ = box.session.Close()
	if _, err := guest.Accept(); err == nil {
		t.Error("the guest is asked twice")
	}
}

// TestATimeoutIsTold to the daemon that comes next, so that it can see to it.
func TestATimeoutIsTold(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	for id, timeout := range map[string]int64{"with": 90_000, "without": 0} {
		s.must(s.Exec(t.Context(), "box", channel.Exec{ID: id, Argv: []string{"cat"}, Timeout: timeout}, ExecOptions{}))
		for _, c := range s.get("box").Commands {
			if c.ID == id && c.TimeoutMS != timeout {
				t.Errorf("%s: %d ms", id, c.TimeoutMS)
			}
		}
	}
}
