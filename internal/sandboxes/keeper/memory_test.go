package keeper

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// TestStreamsOfOneSandbox: whatever a guest sends to a gateway that takes nothing of it, the keeper keeps no
// more of it than docs/operations.md says that a sandbox may cost it. A gateway that takes all gets all.
func TestStreamsOfOneSandbox(t *testing.T) {
	const streams, waiting, each = 256, 32 + channel.Backlog, 1 << 20
	const most = 130 << 20 // the buffers, a copy's own 72 KiB for each stream, and what lives for a moment
	for name, takes := range map[string]bool{"takes nothing": false, "takes all": true} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, takes)
			before := heap()
			var sent atomic.Int64
			piece := make([]byte, each)
			for range streams + waiting {
				s, err := c.guest.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				c.group.Go(func() {
					if s.WriteFrame(channel.FrameOpen, []byte(`{"kind":"tcp","name":"slow.example","port":443}`)) != nil {
						return
					}
					n, _ := s.Raw().Write(piece)
					sent.Add(int64(n))
					_ = s.CloseWrite()
				})
			}
			for c.reached.Load() < streams {
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
			t.Logf("%d streams reached the gateway, and the heap has grown by %d MiB", c.reached.Load(), grown>>20)
			if grown > most {
				t.Errorf("the streams of one sandbox have %d MiB of the keeper", grown>>20)
			}
			for takes && c.taken.Load() < streams*each { // hangs if something was given up
				moment()
			}
		})
	}
}

// crowd is a sandbox behind an uplink, whose gateway takes what a stream is for, and then nothing or all.
type crowd struct {
	guest   *channel.Session
	group   sync.WaitGroup
	reached atomic.Int32 // streams
	taken   atomic.Int64 // bytes
}

func newCrowd(t *testing.T, takes bool) *crowd {
	t.Helper()
	c := &crowd{}
	path := filepath.Join(t.TempDir(), "u.sock")
	gateway, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards conns
	var conns []net.Conn
	c.group.Go(func() {
		for {
			raw, err := gateway.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, raw)
			mu.Unlock()
			c.group.Go(func() { c.serve(raw, takes) })
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
	session, err := channel.NewHostSession(wire)
	if err != nil {
		t.Fatal(err)
	}
	c.guest, err = channel.NewGuestSession(far)
	if err != nil {
		t.Fatal(err)
	}
	box := &sandbox{id: "box", session: session, wire: wire, log: slog.New(slog.DiscardHandler), refusals: newRefusals()}
	c.group.Go(func() {
		uplink{path: path, streams: 256, deadline: time.Minute, gatewayWait: time.Minute}.serveStreams(box)
	})
	t.Cleanup(func() {
		_, _, _ = c.guest.Close(), session.Close(), gateway.Close()
		mu.Lock()
		for _, one := range conns {
			_ = one.Close()
		}
		mu.Unlock()
		c.group.Wait()
		_, _ = near.Close(), far.Close()
	})
	return c
}

func (c *crowd) serve(raw net.Conn, takes bool) {
	conn := channel.NewConn(raw)
	for range 2 { // who it is, and what for
		if _, _, err := conn.ReadFrame(); err != nil {
			return
		}
	}
	c.reached.Add(1)
	buf := make([]byte, 1<<10)
	for takes {
		n, err := raw.Read(buf)
		c.taken.Add(int64(n))
		if errors.Is(err, io.EOF) {
			_ = conn.CloseWrite()
		}
		if err != nil {
			return
		}
	}
}

// heap is what lives, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// moment is between two looks at what is waited for.
func moment() { <-time.After(10 * time.Millisecond) }
