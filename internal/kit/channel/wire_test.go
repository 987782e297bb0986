package channel

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// plug makes a socketpair and gives the guest's end as a connection.
func plug(t *testing.T) (host, guest net.Conn) {
	t.Helper()
	host, file, err := SocketPair()
	if err != nil {
		t.Fatal(err)
	}
	guest, err = net.FileConn(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guest.Close() })
	return host, guest
}

func newWire(t *testing.T) (*Wire, net.Conn) {
	t.Helper()
	host, guest := plug(t)
	w, err := NewWire(host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w, guest
}

// frozenGuest is a guest whose memory (what it has read, how far it is with a
// write) outlives its connection, as a checkpoint's does. A read or write is
// broken off only where the kernel says how far it came.
type frozenGuest struct {
	using sync.RWMutex // held for reading over each use of a connection
	mu    sync.Mutex   // guards conn
	conn  net.Conn
	back  *sync.Cond // conn has changed
}

func newFrozenGuest(conn net.Conn) *frozenGuest {
	g := &frozenGuest{conn: conn}
	g.back = sync.NewCond(&g.mu)
	return g
}

func (g *frozenGuest) current() net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.conn == nil {
		g.back.Wait()
	}
	return g.conn
}

// use calls do with the connection; false if it was taken away before.
func (g *frozenGuest) use(do func(net.Conn)) bool {
	conn := g.current()
	g.using.RLock()
	defer g.using.RUnlock()
	g.mu.Lock()
	same := conn == g.conn
	g.mu.Unlock()
	if same {
		do(conn)
	}
	return same
}

// freeze ends the connection at whatever point its users are.
func (g *frozenGuest) freeze() {
	g.mu.Lock()
	conn := g.conn
	g.conn = nil
	g.mu.Unlock()
	_ = conn.SetDeadline(time.Unix(1, 0))
	g.using.Lock()
	defer g.using.Unlock()
	_ = conn.Close()
}

func (g *frozenGuest) thaw(conn net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conn = conn
	g.back.Broadcast()
}

func (g *frozenGuest) Read(p []byte) (n int, err error) {
	for {
		used := g.use(func(conn net.Conn) { n, err = conn.Read(p) })
		if used && (n > 0 || !IsTimeout(err)) {
			return n, err
		}
	}
}

func (g *frozenGuest) Write(p []byte) (int, error) {
	written := 0
	for {
		var n int
		var err error
		used := g.use(func(conn net.Conn) { n, err = conn.Write(p[written:]) })
		if written += n; used && (written == len(p) || !IsTimeout(err)) {
			return written, err
		}
	}
}

func (g *frozenGuest) Close() error { return g.current().Close() }

// sequence writes numbers in pieces of random length until count bytes.
func sequence(to io.Writer, count int, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 1))
	var all []byte
	for n := uint32(0); len(all) < count; n++ {
		all = binary.BigEndian.AppendUint32(all, n)
	}
	for len(all) > 0 {
		n := min(len(all), 1+random.IntN(100_000))
		if _, err := to.Write(all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// inSequence reads what sequence wrote.
func inSequence(t *testing.T, from io.Reader, count int) {
	t.Helper()
	buf := make([]byte, 4)
	in := bufferedReader(from)
	for n := uint32(0); int(n)*4 < count; n++ {
		if _, err := io.ReadFull(in, buf); err != nil {
			t.Errorf("after %d numbers: %v", n, err)
			return
		}
		if got := binary.BigEndian.Uint32(buf); got != n {
			t.Errorf("number %d instead of %d", got, n)
			return
		}
	}
}

func bufferedReader(r io.Reader) io.Reader { return &chunked{r: r, buf: make([]byte, 37_001)} }

// chunked reads in large pieces of an odd size.
type chunked struct {
	r         io.Reader
	buf, left []byte
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		n, err := c.r.Read(c.buf)
		if n == 0 {
			return 0, err
		}
		c.left = c.buf[:n]
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

// exchange is a freeze and a thaw.
func exchange(t *testing.T, w *Wire, g *frozenGuest) {
	t.Helper()
	if err := w.Quiesce(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.freeze()
	if err := w.Unplug(); err != nil {
		t.Fatal(err)
	}
	host, guest := plug(t)
	if err := w.Plug(host); err != nil {
		t.Fatal(err)
	}
	g.thaw(guest)
}

// TestExchange: what is in flight, both ways and without a pause, arrives once
// and in order over many exchanges.
func TestExchange(t *testing.T) {
	const count, times = 8 << 20, 100
	w, guest := newWire(t)
	g := newFrozenGuest(guest)
	var all sync.WaitGroup
	for _, way := range []struct {
		to   io.Writer
		from io.Reader
		seed uint64
	}{{w, g, 1}, {g, w, 2}} {
		all.Go(func() {
			if err := sequence(way.to, count, way.seed); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() { inSequence(t, way.from, count) })
	}
	for range times {
		exchange(t, w, g)
	}
	all.Wait()
	if n, now := w.Pauses(); n != times || now {
		t.Errorf("%d pauses, quiet now: %t", n, now)
	}
}

// TestSessionOverExchanges: streams of a session live on, those in the middle
// of much data in both directions too.
func TestSessionOverExchanges(t *testing.T) {
	const count, streams = 1 << 20, 8
	w, conn := newWire(t)
	g := newFrozenGuest(conn)
	guest, err := NewGuestSession(g)
	if err != nil {
		t.Fatal(err)
	}
	host, err := NewHostSession(w)
	if err != nil {
		t.Fatal(err)
	}
	var echoing, all sync.WaitGroup
	echoing.Go(func() {
		for {
			stream, err := guest.Accept()
			if err != nil {
				return
			}
			echoing.Go(func() {
				_, _ = io.Copy(struct{ io.Writer }{stream.Raw()}, struct{ io.Reader }{stream.Raw()})
				_ = stream.Raw().Close()
			})
		}
	})
	for i := range streams {
		stream, err := host.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := sequence(stream.Raw(), count, uint64(i)); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			inSequence(t, stream.Raw(), count)
			_ = stream.Close()
		})
	}
	for range 40 {
		exchange(t, w, g)
	}
	all.Wait()
	_ = host.Close()
	_ = guest.Close()
	echoing.Wait()
}

// TestQuiesceOfAGuestThatDoesNotRead: it is refused, and all goes on as if
// nothing had been.
func TestQuiesceOfAGuestThatDoesNotRead(t *testing.T) {
	w, guest := newWire(t)
	const count = 1 << 20 // more than a socket holds, so that a write is in the middle
	var all sync.WaitGroup
	all.Go(func() {
		if err := sequence(w, count, 3); err != nil {
			t.Error(err)
		}
	})
	for { // until the socket is full or nearly
		n, err := outgoing(w.conn)
		if err != nil {
			t.Fatal(err)
		}
		if n > 64<<10 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Quiesce(ctx); !errors.Is(err, fault.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("quiesce: %v", err)
	}
	if err := w.Unplug(); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("unplug of a wire that is not quiet: %v", err)
	}
	inSequence(t, guest, count)
	all.Wait()
	if err := w.Quiesce(t.Context()); err != nil {
		t.Errorf("quiesce once all is read: %v", err)
	}
	if err := w.Quiesce(t.Context()); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("quiesce of a quiet wire: %v", err)
	}
	w.Resume()
	w.Resume()
	if _, err := w.Write([]byte("on")); err != nil {
		t.Error(err)
	}
}

// TestEndOfAQuietGuest: while it is being frozen the guest's end is no end; if
// the freeze is taken back, it is.
func TestEndOfAQuietGuest(t *testing.T) {
	w, guest := newWire(t)
	if err := w.Quiesce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := guest.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	_ = guest.Close()
	got := make(chan error, 1)
	go func() {
		all, err := io.ReadAll(w)
		if string(all) != "last words" {
			t.Errorf("read %q", all)
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("the read ended: %v", err)
	default:
	}
	w.Resume()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestUnplugKeepsWhatNobodyRead: for the next read, before what comes over the
// next connection.
func TestUnplugKeepsWhatNobodyRead(t *testing.T) {
	w, guest := newWire(t)
	if err := w.Quiesce(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("0123456789"), 5000)
	if _, err := guest.Write(want); err != nil {
		t.Fatal(err)
	}
	_ = guest.Close()
	if err := w.Unplug(); err != nil {
		t.Fatal(err)
	}
	if _, now := w.Pauses(); !now {
		t.Error("an unplugged wire is not quiet")
	}
	host, next := plug(t)
	if err := w.Plug(host); err != nil {
		t.Fatal(err)
	}
	if err := w.Plug(host); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("a second plug: %v", err)
	}
	if _, err := next.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want)+3)
	if _, err := io.ReadFull(w, got); err != nil || !bytes.Equal(got, append(want, "new"...)) {
		t.Errorf("read %d bytes, %v; the order or the bytes differ", len(got), err)
	}
}

// TestCloseEndsAllWaiting: in every state.
func TestCloseEndsAllWaiting(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *Wire, net.Conn){
		"open":  func(*testing.T, *Wire, net.Conn) {},
		"quiet": func(t *testing.T, w *Wire, _ net.Conn) { t.Helper(); quiesce(t, w) },
		"unplugged": func(t *testing.T, w *Wire, guest net.Conn) {
			t.Helper()
			quiesce(t, w)
			_ = guest.Close()
			if err := w.Unplug(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, guest := newWire(t)
			prepare(t, w, guest)
			var all sync.WaitGroup
			all.Go(func() {
				if _, err := w.Read(make([]byte, 1)); err == nil {
					t.Error("read something")
				}
			})
			all.Go(func() {
				if _, err := w.Write(make([]byte, 8<<20)); err == nil {
					t.Error("all was written")
				}
			})
			_ = w.Close()
			all.Wait()
			if err := w.Plug(guest); !errors.Is(err, fault.ErrConflict) {
				t.Errorf("plug of a closed wire: %v", err)
			}
			if err := errors.Join(w.Close(), w.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

func quiesce(t *testing.T, w *Wire) {
	t.Helper()
	if err := w.Quiesce(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAWireIsASocket(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := NewWire(a); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a pipe as a wire: %v", err)
	}
}
