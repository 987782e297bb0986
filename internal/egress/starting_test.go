package egress_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/egress"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

// TestAnEndWaitsForNoStart: a sandbox that ends while the gateway starts is settled at once, though its streams wait for that. They are on
// record as not heard.
func TestAnEndWaitsForNoStart(t *testing.T) {
	t.Parallel()
	const asked = 5
	path := filepath.Join(t.TempDir(), "u.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d, done := &fakeDoor{}, make(chan error, 1)
	r := egress.NewRouter(egress.Config{Registry: registry{}, Ready: make(chan struct{}), Door: d})
	go func() { done <- r.Serve(ctx, l) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	say := func(id keeper.StreamIdentity) *channel.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		stream := channel.NewConn(conn)
		if err := stream.WriteJSON(channel.FrameOpen, id); err != nil {
			t.Fatal(err)
		}
		return stream
	}
	var waiting []*channel.Conn
	for range asked {
		waiting = append(waiting, say(keeper.StreamIdentity{Sandbox: "sb-1"}))
	}
	other := say(keeper.StreamIdentity{Sandbox: "sb-2"})
	var reply channel.Reply
	if err := say(keeper.StreamIdentity{Sandbox: "sb-1", Settle: true}).ReadJSON(channel.FrameReply, &reply); err != nil || !reply.OK {
		t.Errorf("the end of one that has asked for something: %+v, %v", reply, err)
	}
	for _, stream := range waiting {
		if err := stream.ReadJSON(channel.FrameReply, &reply); err == nil {
			t.Errorf("a stream of one that has ended is answered %+v", reply)
		}
	}
	d.mu.Lock()
	if len(d.failed) != asked || !strings.Contains(d.failed[0], "was not heard") {
		t.Errorf("on record is %q", d.failed)
	}
	d.mu.Unlock()
	cancel()
	if err := other.ReadJSON(channel.FrameReply, &reply); err == nil {
		t.Errorf("another one's stream is answered %+v", reply)
	}
}
