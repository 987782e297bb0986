package keeper

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// tellIdentity sends back who a stream is from and all that came on it.
func tellIdentity(c *channel.Conn) {
	var who StreamIdentity
	if err := c.ReadStrictJSON(channel.FrameOpen, &who); err != nil {
		return
	}
	kind, open, err := c.ReadFrame()
	if err != nil {
		return
	}
	head := fmt.Sprintf("%s|%d|%s|", who.Sandbox, kind, open)
	body, _ := io.ReadAll(c.Raw()) // to the guest's half-close
	_, _ = io.WriteString(c.Raw(), head+string(body))
}

// TestUplinkIdentity: whatever a guest opens with, the first frame on the
// uplink is the keeper's, the guest's own follows as it was, then bytes both
// ways with their half-closes.
func TestUplinkIdentity(t *testing.T) {
	s := newStage(t)
	s.listenUplink(tellIdentity)
	for _, id := range []string{"victim", "forger"} {
		s.launch(id, "guest")
	}
	big := strings.Repeat("0123456789", 20_000)
	for i, tt := range []struct{ open, body string }{
		{`{"kind":"tcp","name":"index.example","port":443}`, "hello"},
		{`{"sandbox":"victim"}`, "\x01\x00\x00\x00\x14{\"sandbox\":\"victim\"}"},
		{`{"sandbox":"victim","sandbox":"victim"}`, ""},
		{``, big},
		{`not even JSON`, "x"},
	} {
		id := fmt.Sprint(i)
		s.run("forger", id, ExecOptions{}, "open", tt.open, tt.body)
		o := s.result("forger", id)
		if want := "forger|1|" + tt.open + "|" + tt.body; o.out.String() != want || o.errs.Len() != 0 {
			t.Errorf("%.200q, %q; want %.200q", &o.out, &o.errs, want)
		}
	}
}

func TestUplinkDown(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "c", ExecOptions{}, "open", `{"kind":"dns","name":"x.example"}`, "")
	if o := s.result("box", "c"); !strings.Contains(o.out.String(), `"ok":false,"error":"the gateway is not there`) {
		t.Errorf("%q, %q", &o.out, &o.errs)
	}
}

// TestUplinkComesLater: a stream that is opened while one gateway has ended and
// the next is on its way meets the next.
func TestUplinkComesLater(t *testing.T) {
	s := newStage(t, func(c *Config) { c.Gateway = time.Hour })
	s.launch("box", "guest")
	s.run("box", "c", ExecOptions{}, "open", `{"kind":"dns","name":"x.example"}`, "")
	s.run("box", "d", ExecOptions{}, "echo", "the other streams go on")
	if o := s.result("box", "d"); o.exit.Code != 0 {
		t.Errorf("%+v", o.exit)
	}
	s.listenUplink(tellIdentity)
	if o := s.result("box", "c"); !strings.HasPrefix(o.out.String(), `box|1|{"kind":"dns"`) {
		t.Errorf("%q, %q", &o.out, &o.errs)
	}
}

func TestUplinkFirstFrameHasADeadline(t *testing.T) {
	s := newStage(t, func(c *Config) { c.FirstFrame, c.GuestStreams = 50*time.Millisecond, 1 })
	s.launch("box", "guest")
	s.run("box", "c", ExecOptions{}, "stall")
	if o := s.result("box", "c"); o.exit.Code != 0 || o.exit.Error != "" {
		t.Errorf("%+v", o.exit)
	}
	s.run("box", "d", ExecOptions{}, "open", `{}`, "") // the one slot is free again
	if o := s.result("box", "d"); !strings.Contains(o.out.String(), "the gateway is not there") {
		t.Errorf("%q", &o.out)
	}
}

func TestUplinkOversizeFirstFrame(t *testing.T) {
	s := newStage(t)
	touched := make(chan struct{}, 8)
	told := make(chan int, 8)
	s.listenUplink(func(c *channel.Conn) {
		var who StreamIdentity
		if err := c.ReadStrictJSON(channel.FrameOpen, &who); err == nil && who.Refused > 0 {
			told <- who.Refused
			_ = c.WriteJSON(channel.FrameReply, channel.Reply{})
			_ = c.WriteJSON(channel.FrameReply, channel.Reply{OK: true})
			return
		}
		touched <- struct{}{}
	})
	s.launch("box", "guest")
	s.run("box", "c", ExecOptions{}, "rawopen")
	if o := s.result("box", "c"); !strings.Contains(o.out.String(), "the first frame was not") {
		t.Errorf("%q, %q", &o.out, &o.errs)
	}
	if n := <-told; n != 1 || len(touched) != 0 {
		t.Errorf("%d streams reached the uplink, which was told of %d that were refused", len(touched), n)
	}
}

// TestUplinkFlood: 300 streams are opened and held; 256 are served, the others
// refused, of which the gateway is told, commands go on, another sandbox has its own slots, and all are free
// again when the sandbox is gone.
func TestUplinkFlood(t *testing.T) {
	s := newStage(t)
	told := make(chan StreamIdentity, 300)
	s.listenUplink(func(c *channel.Conn) {
		var who StreamIdentity
		if err := c.ReadStrictJSON(channel.FrameOpen, &who); err == nil && who.Refused > 0 {
			told <- who
			_ = c.WriteJSON(channel.FrameReply, channel.Reply{})
			_ = c.WriteJSON(channel.FrameReply, channel.Reply{OK: true})
			return
		}
		_, _, _ = c.ReadFrame()
		_ = c.WriteJSON(channel.FrameReply, channel.Reply{OK: true})
		_, _ = io.Copy(io.Discard, c.Raw())
	})
	s.launch("box", "guest")
	s.launch("other", "guest")
	s.run("box", "flood", ExecOptions{}, "many", "300")
	if o := s.result("box", "flood"); o.out.String() != "[256,44]" {
		t.Errorf("served and refused: %s", &o.out)
	}
	for refused := 0; refused < 44; {
		who := <-told
		if refused += who.Refused; who.Sandbox != "box" || refused > 44 {
			t.Errorf("told of %+v", who)
		}
	}
	s.run("box", "c", ExecOptions{}, "echo", "alive")
	if o := s.result("box", "c"); o.out.String() != "alive" {
		t.Errorf("%q", &o.out)
	}
	s.run("other", "few", ExecOptions{}, "many", "10")
	if o := s.result("other", "few"); o.out.String() != "[10,0]" {
		t.Errorf("served and refused: %s", &o.out)
	}
	s.must(s.Kill(t.Context(), "box"))
	s.must(s.Forget(t.Context(), "box"))
	s.launch("box", "guest")
	s.run("box", "again", ExecOptions{}, "many", "256")
	if o := s.result("box", "again"); o.out.String() != "[256,0]" || len(told) != 0 {
		t.Errorf("served and refused: %s, and %d times more were told", &o.out, len(told))
	}
}

// TestNobodyIsToldOfNoRefusal: who is to tell, and has nothing to tell of, says nothing: a number that is
// none would stand for a stream that does not say what it is for. The control has one to tell of. A count
// that could not be told, since there is no gateway, or it could not put it on record, or did not say so, is
// kept.
func TestNobodyIsToldOfNoRefusal(t *testing.T) {
	said := func(replies ...channel.Reply) func(*channel.Conn) {
		return func(c *channel.Conn) {
			for _, r := range replies {
				_ = c.WriteJSON(channel.FrameReply, r)
			}
		}
	}
	for name, c := range map[string]struct {
		refused, told, left int64
		gateway             func(*channel.Conn) // nil: there is none
	}{
		"none":              {0, 0, 0, said()},
		"one":               {1, 1, 0, said(channel.Reply{}, channel.Reply{OK: true})},
		"ended before it":   {1, 1, 1, said()},
		"not on record":     {1, 1, 1, said(channel.Reply{}, channel.Reply{Error: "the disk is full"})},
		"ended meanwhile":   {1, 1, 1, said(channel.Reply{})},
		"there is no other": {1, 0, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "u.sock")
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
			if err != nil {
				t.Fatal(err)
			}
			if c.gateway == nil {
				_ = l.Close()
			}
			told := make(chan int64, 10)
			var gateway sync.WaitGroup
			gateway.Go(func() {
				for {
					raw, err := l.Accept()
					if err != nil {
						return
					}
					conn := channel.NewConn(raw)
					var who StreamIdentity
					if conn.ReadStrictJSON(channel.FrameOpen, &who) == nil {
						told <- int64(who.Refused)
						c.gateway(conn)
					}
					_ = raw.Close()
				}
			})
			box, _ := withGuest(t)
			_ = box.session.Close() // else it waits for more to tell of
			box.refusals.count = c.refused
			uplink{path: path, deadline: time.Minute, gatewayWait: time.Minute}.tellRefused(box)
			_ = l.Close()
			gateway.Wait()
			close(told)
			sum := int64(0)
			for n := range told {
				if sum += n; n == 0 {
					t.Error("told of none")
				}
			}
			if left, _ := box.refusals.settleUntold(t.Context()); sum != c.told || left != c.left {
				t.Errorf("told of %d and left are %d, not %d and %d", sum, left, c.told, c.left)
			}
		})
	}
}

func TestIDs(t *testing.T) {
	good := []string{"a", "A9", "sb-1.2_3", strings.Repeat("x", 128)}
	bad := []string{"", ".", "..", "-a", "a/b", "a b", "a\x00", "ä", strings.Repeat("x", 129)}
	for _, id := range slices.Concat(good, bad) {
		if validID(id) != slices.Contains(good, id) {
			t.Errorf("%q: %t", id, validID(id))
		}
	}
}

// TestLastWordsReachTheGateway: all that a guest has said on a stream is the gateway's to judge, though the guest is gone
// before the gateway has read it: more than one socket holds.
func TestLastWordsReachTheGateway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "u.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	box, guest := withGuest(t)
	box.wire = &channel.Wire{}
	served := make(chan struct{})
	go func() {
		defer close(served)
		uplink{path: path, streams: 1, deadline: time.Minute, gatewayWait: time.Minute}.serveStreams(box)
	}()
	stream, err := guest.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Repeat("0123456789", 30_000)
	if err := stream.WriteJSON(channel.FrameOpen, channel.Open{Kind: channel.OpenTCP, Name: "a.example", Port: 80}); err != nil {
		t.Fatal(err)
	}
	raw, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	gateway := channel.NewConn(raw)
	for range 2 {
		if _, _, err := gateway.ReadFrame(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(stream.Raw(), said); err != nil {
		t.Fatal(err)
	}
	_ = guest.Close()
	<-served // the keeper knows
	heard, err := io.ReadAll(raw)
	if string(heard) != said {
		t.Errorf("the gateway has heard %d bytes of %d, %v", len(heard), len(said), err)
	}
}
