package keeper

import (
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

// TestStreamsOfOneSandbox: whatever a guest sends to a gateway that takes it slowly, the keeper keeps no more
// of it than docs/operations.md says that a sandbox may cost it.
func TestStreamsOfOneSandbox(t *testing.T) {
	const streams, waiting, each, most = 256, maxRefusals + channel.Backlog, 1 << 20, 100 << 20
	path := filepath.Join(t.TempDir(), "u.sock")
	gateway, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var reached atomic.Int32
	var mu sync.Mutex // guards conns
	var conns []net.Conn
	group.Go(func() {
		for {
			raw, err := gateway.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, raw)
			mu.Unlock()
			group.Go(func() { // takes what a stream is for, and then nothing for now
				c := channel.NewConn(raw)
				for range 2 {
					if _, _, err := c.ReadFrame(); err != nil {
						return
					}
				}
				reached.Add(1)
			})
		}
	})
	near, file, err := channel.SocketPair()
	if err != nil {
		t.Fatal(err)
	}
	far, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		t.Fatal(err)
	}
	wire, err := channel.NewWire(near)
	if err != nil {
		t.Fatal(err)
	}
	session := make(chan *channel.Session, 1)
	group.Go(func() {
		s, err := channel.NewHostSession(wire)
		if err != nil {
			t.Error(err)
		}
		session <- s
	})
	guest, err := channel.NewGuestSession(far)
	if err != nil {
		t.Fatal(err)
	}
	box := &sandbox{id: "box", session: <-session, wire: wire, log: slog.New(slog.DiscardHandler)}
	group.Go(func() {
		uplink{path: path, streams: streams, deadline: time.Minute, gatewayWait: time.Minute}.serve(box)
	})

	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	var sent atomic.Int64
	var mine []net.Conn // the guest's ends, which it keeps
	piece := make([]byte, each)
	for range streams + waiting {
		s, err := guest.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mine = append(mine, s.Raw())
		group.Go(func() {
			if s.WriteFrame(channel.FrameOpen, []byte(`{"kind":"tcp","name":"slow.example","port":443}`)) != nil {
				return
			}
			n, _ := s.Raw().Write(piece)
			sent.Add(int64(n))
		})
	}
	// Until nothing more is taken: the same count for so many looks.
	for reached.Load() < streams {
		moment()
	}
	grown := int64(0)
	for same := 0; same < 20; moment() { // until it grows no more
		if now := heap() - before; now > grown {
			same, grown = 0, now
		} else {
			same++
		}
	}
	t.Logf("%d streams reached the gateway, and the heap has grown by %d MiB", reached.Load(), grown>>20)
	if grown > most {
		t.Errorf("the streams of one sandbox have %d MiB of the keeper", grown>>20)
	}
	_ = guest.Close()
	_ = box.session.Close()
	_ = gateway.Close()
	mu.Lock()
	for _, c := range conns {
		_ = c.Close()
	}
	mu.Unlock()
	group.Wait()
	_ = near.Close()
	_ = far.Close()
}

// moment is between two looks at what is waited for.
func moment() { <-time.After(10 * time.Millisecond) }
