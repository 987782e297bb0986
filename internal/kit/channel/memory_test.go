package channel

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// frames is a guest that writes the multiplexer's frames itself, and its host.
func frames(t *testing.T) (host *Session, far net.Conn, send func(id uint32, kind, flags byte, length int)) {
	t.Helper()
	near, far := net.Pipe()
	host, err := NewHostSession(near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = far.Close(), host.Close() })
	return host, far, func(id uint32, kind, flags byte, length int) {
		b := binary.BigEndian.AppendUint32([]byte{muxVersion, kind, 0, flags}, id)
		b = binary.BigEndian.AppendUint32(b, uint32(length))
		_, _ = far.Write(append(b, make([]byte, length)...)) // a session that has ended takes none
	}
}

// TestAStreamsIDIsNotUsedTwice: what the second of that id holds would not be counted. The control has
// another id.
func TestAStreamsIDIsNotUsedTwice(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]uint32{"the same": 2, "another": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, far, send := frames(t)
			go func() { _, _ = io.Copy(io.Discard, far) }()
			send(2, muxData, muxSYN, 1_000)
			first, err := host.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if err := first.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			send(2, 1, muxFIN, 0) // both have closed it, and it is not read
			send(second, muxData, muxSYN, 1_000)
			if second == 2 {
				<-host.Done()
				return
			}
			if _, err := host.Accept(); err != nil {
				t.Errorf("a stream of another id: %v", err)
			}
		})
	}
}

// TestAnAnswerBeforeTheStreamIsKnown: a guest may answer and close a stream before the host's own opener
// goes on. It is counted, and forgotten when it is read and closed.
func TestAnAnswerBeforeTheStreamIsKnown(t *testing.T) {
	t.Parallel()
	host, far, send := frames(t)
	opened := make(chan *Conn)
	heard := make(chan struct{})
	go func() {
		defer close(opened)
		now := host.currentLife()
		raw, err := now.mux.OpenStream()
		if err != nil {
			return
		}
		<-heard
		opened <- now.wrapStream(raw)
	}()
	if _, err := io.ReadFull(far, make([]byte, muxHeaderSize)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, far) }()
	send(1, muxData, 2|muxFIN, 1_000) // 2: acknowledges
	send(0, muxGoAway, 0, 0)          // the one before has been taken in then
	held := host.currentLife().held
	if held.size() < 1_000 {
		t.Errorf("%d bytes are counted", held.size())
	}
	close(heard)
	c, ok := <-opened
	if !ok {
		t.Fatal("no stream")
	}
	if n, err := io.Copy(io.Discard, c.Raw()); n != 1_000 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	if len(held.streams) > 0 || held.total > 0 {
		t.Errorf("%d streams with %d bytes are kept", len(held.streams), held.total)
	}
}

// TestASilentSessionMakesRoom: one that holds more than its part, since others came, gives streams up
// though its guest sends nothing more; as long as its part is large enough it gives none up.
func TestASilentSessionMakesRoom(t *testing.T) {
	t.Parallel()
	memory := new(Memory)
	session := func() (host, guest *Session) {
		near, far := net.Pipe()
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
	first, guest := session()
	var lost atomic.Int32
	lose := make(chan struct{}, 100)
	fill(t, first, guest, 20, func(far *Conn) {
		far.OnGiveUp(func() {
			lost.Add(1)
			lose <- struct{}{}
			far.discard()
		})
	})
	second, other := session()
	fill(t, second, other, 12, func(*Conn) {})
	memory.heavy.Add(18) // its part is more than it holds, and less than twice that
	first.currentLife().held.giveUp()
	if first.currentLife().held.shedding.Load() || lost.Load() > 0 {
		t.Fatalf("%d streams of a session with room were given up", lost.Load())
	}
	memory.heavy.Add(allHeld)
	third, more := session()
	fill(t, third, more, 12, func(*Conn) {})
	<-lose
	for held := first.currentLife().held; ; {
		if eased, full := held.isFull(); full {
			<-eased
			continue
		}
		return
	}
}

// TestAllSessionsTogether may hold a part of the least memory that the keeper has, however many they are.
func TestAllSessionsTogether(t *testing.T) {
	t.Parallel()
	for sessions := int64(1); sessions <= 32; sessions++ {
		m := new(Memory)
		m.heavy.Store(sessions)
		if all := sessions * (m.sessionLimit() + m.pastLimit()); all > allHeld+allPast {
			t.Errorf("%d sessions may hold %d MiB", sessions, all>>20)
		}
	}
}
