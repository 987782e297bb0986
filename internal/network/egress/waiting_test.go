package egress_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// TestAGuestHasNoMoreStreamsWaitThanItMayHave: while a gateway starts, streams that their guest has closed again wait on, so that one who opens
// and closes them would take the gateway's descriptors from all. They count as what goes on from the first.
func TestAGuestHasNoMoreStreamsWaitThanItMayHave(t *testing.T) {
	t.Parallel()
	const most = 3
	path := filepath.Join(t.TempDir(), "u.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d, ready, done := &fakeDoor{}, make(chan struct{}), make(chan error, 1)
	r := egress.NewRouter(egress.Config{Registry: registry{}, Ready: ready, Door: d, Limits: egress.Limits{Streams: most}})
	go func() { done <- r.Serve(ctx, l) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	dial := func() net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	var all []*channel.Conn
	for range 10 * most {
		conn := dial()
		stream := channel.NewConn(conn)
		for _, frame := range []any{keeper.StreamIdentity{Sandbox: "sb-1"}, channel.Open{Kind: channel.OpenDNS, Name: "n.evil.example"}} {
			_ = stream.WriteJSON(channel.FrameOpen, frame) // one too many may be answered and closed before it has said all
		}
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		all = append(all, stream)
	}
	type heard struct {
		channel.Reply
		err error
	}
	answered := make(chan heard, len(all))
	for _, stream := range all {
		go func() {
			var h heard
			h.err = stream.ReadJSON(channel.FrameReply, &h.Reply)
			answered <- h
		}()
	}
	for range len(all) - most {
		if h := <-answered; h.err != nil || !strings.HasPrefix(h.Error, "too many connections") {
			t.Fatalf("one too many waits, or is told %q: %v", h.Error, h.err)
		}
	}
	d.until(t, "a record", func() bool { return len(d.failed) > 0 })
	close(ready)
	for range most {
		if h := <-answered; h.err != nil || h.DNS == nil {
			t.Errorf("what may wait is told %q: %v", h.Error, h.err)
		}
	}
}
