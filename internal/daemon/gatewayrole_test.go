package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/dialer"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

// waitingDoor is a daemon's door that has a gateway wait for its certificate, and tells what it is to record.
type waitingDoor struct {
	door.Door
	asked, onward chan struct{}     // the first is closed when it waits, and the other lets it go on
	failed        chan door.Failure // has room
	refused       error             // instead of a certificate
}

func newWaitingDoor() waitingDoor {
	return waitingDoor{asked: make(chan struct{}), onward: make(chan struct{}), failed: make(chan door.Failure, 1_000)}
}

func (d waitingDoor) Trust(ctx context.Context, _ []string) (door.Certificate, error) {
	close(d.asked)
	select {
	case <-d.onward:
	case <-ctx.Done():
	}
	return door.Certificate{}, errors.Join(d.refused, ctx.Err())
}

func (d waitingDoor) Failed(_ context.Context, f door.Failure) (door.Answer, error) {
	d.failed <- f
	return door.Answer{}, nil
}

// beGateway serves as a gateway without upstreams does, as long as ctx goes on; the error comes at its end.
func beGateway(ctx context.Context, t *testing.T, d door.Door) (uplink string, ended <-chan error) {
	t.Helper()
	ours, file, err := socketPair()
	must(t, err)
	theirs, err := net.FileConn(file)
	must(t, err)
	must(t, file.Close())
	one, other, err := dialer.Pair()
	must(t, err)
	connections, err := dialer.NewClient(other)
	must(t, err)
	uplink = filepath.Join(t.TempDir(), "u.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", uplink)
	must(t, err)
	done := make(chan error, 1)
	go func() {
		_ = serveDoor(ctx, ours, d, func() error {
			done <- serveGateway(ctx, bootDocument{}, theirs, l, connections, quiet())
			return nil
		}, quiet())
	}()
	t.Cleanup(func() { _, _ = one.Close(), connections.Close() })
	return uplink, done
}

// TestAGatewayThatEndsPutsOnRecordWhatItCounted, for which the daemon answers it until it has ended.
func TestAGatewayThatEndsPutsOnRecordWhatItCounted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	d := newWaitingDoor()
	close(d.onward)
	uplink, ended := beGateway(ctx, t, d)
	counted := 0
	for range 1_000 {
		raw, err := (&net.Dialer{}).DialContext(t.Context(), "unix", uplink)
		must(t, err)
		stream := channel.NewConn(raw)
		must(t, stream.WriteJSON(channel.FrameOpen, keeper.StreamIdentity{Sandbox: "sb-1"}))
		_ = stream.WriteJSON(channel.FrameOpen, channel.Open{Kind: channel.OpenHangUp}) // it may be refused by now
		var r channel.Reply
		must(t, stream.ReadJSON(channel.FrameReply, &r))
		must(t, raw.Close())
		if !r.OK {
			counted++
		}
	}
	if counted < 100 {
		t.Fatalf("INCONCLUSIVE: %d are refused unheard", counted)
	}
	cancel()
	must(t, <-ended)
	close(d.failed)
	recorded := 0
	for f := range d.failed {
		n := 0
		if _, err := fmt.Sscanf(f.Reason, "%d connections", &n); err != nil {
			t.Errorf("on record is %+v", f)
		}
		recorded += n
	}
	if recorded != counted {
		t.Errorf("%d are on record of %d that were refused unheard", recorded, counted)
	}
}
