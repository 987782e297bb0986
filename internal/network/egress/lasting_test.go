package egress_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// TestRequestsUnderWayHaveAnEnd: of all that have reached the host when the client closes its
// connection. A request that the client does not wait for is on record before the connection's end is.
func TestRequestsUnderWayHaveAnEnd(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		const rounds = 4
		under := 50
		if !http2 {
			under = 1
		}
		for range rounds {
			var reached atomic.Int64
			all := make(chan struct{})
			e := endAt(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/good/first" {
					return
				}
				if reached.Add(1) == int64(under) {
					close(all)
				}
				<-r.Context().Done()
			}), "api.example")
			var conns sync.Map
			c := e.client(t, http2)
			tr := c.Transport.(*http.Transport)
			dial := tr.DialContext
			tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				conns.Store(conn, true)
				return conn, err
			}
			ask(t, c, http.MethodGet, "https://api.example/good/first", nil) // so that there is one connection
			var clients sync.WaitGroup
			for range under {
				clients.Go(func() {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/good/x", nil) // which is sent once
					if err != nil {
						t.Error(err)
						return
					}
					if a, err := c.Do(r); err == nil {
						_ = a.Body.Close()
					}
				})
			}
			<-all
			conns.Range(func(conn, _ any) bool { _ = conn.(net.Conn).Close(); return true })
			clients.Wait()
			e.door.until(t, "the connection's end", func() bool { return len(e.door.ended) == len(e.door.begun) })
			e.door.mu.Lock()
			if len(e.door.done) != int(reached.Load())+1 {
				t.Errorf("%d of %d requests have an end", len(e.door.done), reached.Load()+1)
			}
			e.door.mu.Unlock()
		}
	})
}

// refusingDoor takes what became of requests as its test says.
type refusingDoor struct {
	*judgingDoor
	takes func(door.RequestsDone) error
	ends  func() error
}

func (d *refusingDoor) Requested(ctx context.Context, done door.RequestsDone) error {
	if err := d.takes(done); err != nil {
		return err
	}
	return d.judgingDoor.Requested(ctx, done)
}

func (d *refusingDoor) Disconnected(ctx context.Context, how door.Disconnection) error {
	if err := d.ends(); err != nil {
		return err
	}
	return d.judgingDoor.Disconnected(ctx, how)
}

// TestWhatTheDoorDoesNotTake is told again: a batch one by one if it is refused for what is in
// it, and all of it later if the log can't be written. A method that nobody has reaches
// nobody, and no message to the door is longer than it takes.
func TestWhatTheDoorDoesNotTake(t *testing.T) {
	var failures atomic.Int64
	e := endAt(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), "api.example")
	d := &refusingDoor{judgingDoor: e.door, ends: func() error {
		if failures.Add(1) < 3 {
			return fault.New(fault.ErrUnavailable, "the disk is full")
		}
		return nil
	}, takes: func(done door.RequestsDone) error {
		for _, one := range done.Requests {
			switch {
			case strings.HasSuffix(one.Path, "poison"):
				return fault.Invalid("it is too long")
			case strings.HasSuffix(one.Path, "full") && failures.Add(1) < 4:
				return fault.New(fault.ErrUnavailable, "the disk is full")
			}
		}
		return nil
	}}
	e.dial = uplinkTo(t, e.door.fakeDoor, egress.Limits{Look: 1 << 40}, e.dialer, d)
	c := e.client(t, false)
	paths := []string{"a", "poison", "b", "full", "c"}
	for _, path := range paths {
		if status, said := ask(t, c, http.MethodGet, "https://api.example/good/"+path, nil); status != 200 {
			t.Errorf("%s: %d %s", path, status, said)
		}
	}
	if status, _ := ask(t, c, strings.Repeat("M", 50<<10), "https://api.example/good/x", nil); status != http.StatusNotImplemented {
		t.Errorf("a long method: %d", status)
	}
	c.CloseIdleConnections()
	e.door.until(t, "all ends", func() bool { return len(e.door.done) == len(paths) && len(e.door.ended) == 1 })
	for i, path := range []string{"/good/a", "", "/good/b", "/good/full", "/good/c"} {
		if e.door.done[i].Path != path || e.door.done[i].Status != 200 {
			t.Errorf("%+v, want %s", e.door.done[i], path)
		}
	}
}

// TestAClientThatGoesWhileItIsJudged: the connection that Connect begins behind it ends at
// once, and nobody looks after it any longer.
func TestAClientThatGoesWhileItIsJudged(t *testing.T) {
	d := &hesitantDoor{fakeDoor: &fakeDoor{allowed: hosts()}, asked: make(chan struct{}), answer: make(chan struct{})}
	at := newPlace(t)
	dial := uplinkTo(t, d.fakeDoor, egress.Limits{Look: 1}, pinned(t, at.Addr()), d)
	for range 20 {
		conn := to(t, dial(), "api.example", 80)
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: api.example\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-d.asked
		_ = conn.Close()
		d.answer <- struct{}{}
	}
	d.until(t, "all ends", func() bool { return len(d.ended) == 20 && len(d.begun) == 20 })
	// One more goes on, and is all that is looked after.
	conn := to(t, dial(), "api.example", 80)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: api.example\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-d.asked
	d.answer <- struct{}{}
	d.until(t, "the one that goes on is looked after", func() bool { return len(d.looked) == 1 && d.looked[0] == 21 })
}

// hesitantDoor is asked for connections, and answers when its test says.
type hesitantDoor struct {
	*fakeDoor
	asked, answer chan struct{}
	looked        []uint64 // guarded by fakeDoor.mu
}

func (d *hesitantDoor) Connect(ctx context.Context, ask door.ConnectAsk) (door.Answer, error) {
	d.asked <- struct{}{}
	<-d.answer
	return d.fakeDoor.Connect(ctx, ask)
}

func (d *hesitantDoor) Standing(ctx context.Context, sandbox string, connections []uint64) ([]uint64, error) {
	d.mu.Lock()
	d.looked = connections
	d.mu.Unlock()
	return d.fakeDoor.Standing(ctx, sandbox, connections)
}
