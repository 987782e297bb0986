package channel

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
)

// TestGrowthFollowsABuffer: the size that is counted is about that of the multiplexer's buffer, however
// long the frames are and whatever is read between them.
func TestGrowthFollowsABuffer(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		var b *bytes.Buffer
		var g growth
		for range 40 {
			if n := random.IntN(1 << (1 + random.IntN(18))); n > 0 && int(g.unread)+n <= HostWindow {
				if b == nil {
					b = bytes.NewBuffer(make([]byte, 0, n))
				}
				var from io.Reader = &io.LimitedReader{R: bytes.NewReader(make([]byte, n)), N: int64(n)}
				if round%2 > 0 {
					from = iotest.HalfReader(from)
				}
				if _, err := b.ReadFrom(from); err != nil {
					t.Fatal(err)
				}
				g.addBytes(int64(n))
			} else if b != nil {
				read, _ := b.Read(make([]byte, random.IntN(1<<16)))
				g.takeBytes(int64(read))
			}
			if b == nil {
				continue
			}
			if unread := int64(b.Len()); unread != g.unread {
				t.Fatalf("%d bytes are unread, and %d are counted", unread, g.unread)
			}
			if size := int64(b.Cap()); size > 2*g.size+16<<10 || g.size > 2*size+16<<10 {
				t.Fatalf("the buffer takes %d bytes, and %d are counted", size, g.size)
			}
		}
	}
}

// crowd is a host's session whose limit is the least, and its guest.
func crowd(t *testing.T) (host, guest *Session) {
	t.Helper()
	near, far := net.Pipe()
	memory := new(Memory)
	memory.heavy.Store(allHeld) // others take all that may be taken
	host, err := memory.NewHostSession(near)
	if err != nil {
		t.Fatal(err)
	}
	host.currentLife().held.patience = 10 * time.Millisecond
	guest, err = NewGuestSession(far)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = guest.Close(), host.Close() })
	return host, guest
}

// fill opens streams, sends as much on each as may be in flight, and gives the host's ends.
func fill(t *testing.T, host, guest *Session, streams int, accepted func(*Conn)) {
	t.Helper()
	var sending sync.WaitGroup
	for range streams {
		s, err := guest.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sending.Go(func() { _, _ = s.Raw().Write(make([]byte, HostWindow)) })
		far, err := host.Accept()
		if err != nil {
			t.Fatal(err)
		}
		accepted(far)
	}
	sending.Wait() // all of it was taken from the guest
}

// TestStreamsThatHoldTooMuch: past the limit those streams are given up that nobody reads, the session
// holds no more than the limit then, and a control call is answered. Below it, and of streams that are
// read, none is.
func TestStreamsThatHoldTooMuch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		streams       int
		read, givesUp bool
	}{
		"below the limit":    {streams: 4},
		"read":               {streams: 64, read: true},
		"past the limit":     {streams: 64, givesUp: true},
		"far past the limit": {streams: 300, givesUp: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, guest := crowd(t)
			var lost atomic.Int32
			fill(t, host, guest, c.streams, func(far *Conn) {
				far.OnGiveUp(func() {
					lost.Add(1)
					far.discard()
				})
				if c.read {
					go far.discard()
				}
			})
			if given := lost.Load() > 0; given != c.givesUp {
				t.Fatalf("%d of %d streams were given up", lost.Load(), c.streams)
			}
			answered(t, host, guest)
			if c.givesUp {
				for held := host.currentLife().held; ; {
					if eased, full := held.isFull(); full {
						<-eased
						continue
					}
					break
				}
			}
		})
	}
}

// TestNothingToGiveUp: streams that can't be given up keep nothing from a guest's answers.
func TestNothingToGiveUp(t *testing.T) {
	t.Parallel()
	host, guest := crowd(t)
	fill(t, host, guest, 12, func(*Conn) {}) // more than the limit, less than what ends a session
	answered(t, host, guest)
}

// TestAGuestThatReadsNothing any more while it fills streams that it had opened, so that the host can't
// empty what it has given up, is ended. The control reads on.
func TestAGuestThatReadsNothing(t *testing.T) {
	t.Parallel()
	const streams = 400
	for _, reads := range []bool{true, false} {
		near, far := net.Pipe()
		host, err := NewHostSession(near)
		if err != nil {
			t.Fatal(err)
		}
		held := host.currentLife().held
		held.patience = 10 * time.Millisecond
		var group sync.WaitGroup
		taken := make(chan struct{})
		group.Go(func() {
			for {
				s, err := host.Accept()
				if err != nil {
					return
				}
				taken <- struct{}{}
				group.Go(s.discard)
			}
		})
		group.Go(func() { _, _ = io.Copy(io.Discard, far) })
		frame := func(i int, kind, flags byte, length int) {
			b := binary.BigEndian.AppendUint32([]byte{muxVersion, kind, 0, flags}, uint32(2*i+2))
			b = binary.BigEndian.AppendUint32(b, uint32(length))
			_, _ = far.Write(append(b, make([]byte, length)...))
		}
		for i := range streams {
			frame(i, 1, muxSYN, 0)
			<-taken // the backlog is less than all of them
		}
		if !reads {
			_ = far.SetReadDeadline(time.Unix(1, 0))
		}
		most := int64(0)
		for i := range streams {
			frame(i, muxData, 0, HostWindow)
			most = max(most, held.size())
		}
		if ended := host.currentLife().mux.IsClosed(); ended == reads {
			t.Errorf("reads %t: the session has ended: %t", reads, ended)
		}
		if most > mostHeld+pastHeld+1<<20 {
			t.Errorf("%d MiB were held", most>>20)
		}
		_, _ = far.Close(), host.Close()
		group.Wait()
	}
}

// size is what is held, in bytes.
func (h *sessionMemory) size() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total
}

// answered has the guest answer a call of the host.
func answered(t *testing.T, host, guest *Session) {
	t.Helper()
	s, err := host.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.WriteFrame(FrameSignal, []byte("kill")); err != nil {
		t.Fatal(err)
	}
	far, err := guest.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := far.ReadFrame(); err != nil {
		t.Fatal(err)
	}
	if err := far.WriteFrame(FrameReply, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.ReadFrame(); err != nil {
		t.Fatal(err)
	}
}
