package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/dialer"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
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

// TestAGatewayThatStartsHoldsNoEndUp: it has counted nothing yet, however long its upstreams take to say what it has to know; but what
// a guest asks for meanwhile waits for them, and its end for that.
func TestAGatewayThatStartsHoldsNoEndUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	d := newWaitingDoor()
	uplink, ended := beGateway(ctx, t, d)
	<-d.asked
	within, late := context.WithTimeout(t.Context(), 10*time.Second)
	defer late()
	must(t, settleGateway(within, uplink, "sb-1"))
	raw, err := (&net.Dialer{}).DialContext(t.Context(), "unix", uplink)
	must(t, err)
	defer raw.Close()
	stream := channel.NewConn(raw)
	must(t, stream.WriteJSON(channel.FrameOpen, keeper.StreamIdentity{Sandbox: "sb-2"}))
	must(t, stream.WriteJSON(channel.FrameOpen, channel.Open{Kind: "else"}))
	must(t, settleGateway(within, uplink, "sb-1"))
	if err := settleGateway(within, uplink, "sb-2"); err == nil {
		t.Error("what another one waits for is settled")
	}
	if len(d.failed) != 0 {
		t.Errorf("on record is %+v", <-d.failed)
	}
	close(d.onward)
	must(t, stream.ReadJSON(channel.FrameReply, &channel.Reply{}))
	must(t, settleGateway(within, uplink, "sb-2"))
	if len(d.failed) != 1 {
		t.Errorf("%d records", len(d.failed))
	}
	cancel()
	must(t, <-ended)
}

// TestAGatewayThatCannotStartEnds, with the error, and so does one that is to end while it starts.
func TestAGatewayThatCannotStartEnds(t *testing.T) {
	t.Parallel()
	for _, refused := range []error{nil, errors.New("no certificate")} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		d := newWaitingDoor()
		d.refused = refused
		_, ended := beGateway(ctx, t, d)
		<-d.asked
		if refused == nil {
			cancel()
		} else {
			close(d.onward)
		}
		if err := <-ended; err == nil {
			t.Error("it has no certificate, and no error")
		}
	}
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
