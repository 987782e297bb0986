package resumable

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// pair is two ends of a connection that the kernel holds.
func pair(t *testing.T) (*net.UnixConn, *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pair")
		conn, err := net.FileConn(file)
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		conns[i] = conn.(*net.UnixConn)
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conns[0], conns[1]
}

// join gives two ends a line.
func join(t *testing.T, a, b *End) (net.Conn, net.Conn) {
	t.Helper()
	x, y := pair(t)
	var both sync.WaitGroup
	both.Go(func() {
		if err := a.Attach(x); err != nil {
			t.Error(err)
		}
	})
	if err := b.Attach(y); err != nil {
		t.Error(err)
	}
	both.Wait()
	return x, y
}

// fragile is a connection that breaks after some bytes.
type fragile struct {
	*net.UnixConn
	left int
}

func (f *fragile) Read(p []byte) (int, error) {
	n, err := f.UnixConn.Read(p[:min(len(p), 10_000)])
	if f.left -= n; f.left < 0 {
		_ = f.Close()
	}
	return n, err
}

// noise is bytes that no two places have alike.
func noise(seed uint64, n int) []byte {
	random := rand.NewChaCha8([32]byte{byte(seed)})
	data := make([]byte, n)
	_, _ = random.Read(data) // never fails
	return data
}

// TestBreaks: whatever breaks, each byte arrives once and in order, both ways.
func TestBreaks(t *testing.T) {
	const size = 4 << 20
	a, b := New(), New()
	there, back := noise(1, size), noise(2, size)
	var work sync.WaitGroup
	for _, way := range []struct {
		from, to *End
		data     []byte
	}{{a, b, there}, {b, a, back}} {
		work.Go(func() {
			if _, err := way.from.Write(way.data); err != nil {
				t.Error(err)
			}
		})
		work.Go(func() {
			got := make([]byte, size)
			if _, err := io.ReadFull(way.to, got); err != nil || !bytes.Equal(got, way.data) {
				t.Errorf("another stream arrived (%v)", err)
			}
			go func() { _, _ = io.Copy(io.Discard, way.to) }() // who does not read hears nothing either
		})
	}
	go func() {
		work.Wait()
		_ = a.Close()
	}()
	breaks := 0
	for ; a.Unattached() == nil; breaks++ {
		x, y := pair(t)
		go func() { _ = b.Attach(&fragile{y, 100 << 10}) }()
		_ = a.Attach(&fragile{x, 150 << 10}) // it may break before it is one
	}
	_ = b.Close()
	if breaks < 5 {
		t.Errorf("INCONCLUSIVE: only %d lines", breaks)
	}
}

// TestAnotherInItsPlace: a state is all that is needed to go on, in the middle of anything.
func TestAnotherInItsPlace(t *testing.T) {
	const size = 2 << 20
	host, guest := New(), New()
	out, in := noise(3, size), noise(4, size)
	far, near := pair(t) // what the host's end stands before
	go func() { _, _ = far.Write(out) }()
	go func() { _, _ = guest.Write(in) }()
	heard := make(chan []byte, 1)
	go func() {
		got := make([]byte, size)
		_, _ = io.ReadFull(guest, got)
		heard <- got
		_, _ = io.Copy(io.Discard, guest)
	}()
	serve := func(e *End) {
		go func() { _ = e.Feed(near) }()
		go func() { _ = e.Deliver(near) }()
	}
	serve(host)
	got, quarters := make([]byte, size), make(chan error, 4)
	go func() { // as a keeper, it never stops reading
		for i := range 4 {
			_, err := io.ReadFull(far, got[i*size/4:(i+1)*size/4])
			quarters <- err
		}
	}()
	for range 3 {
		join(t, host, guest)
		if err := <-quarters; err != nil {
			t.Fatal(err)
		}
		state := host.Hold()
		next := New()
		if err := next.Restore(state); err != nil {
			t.Fatal(err)
		}
		host.mu.Lock()
		host.over = net.ErrClosed // as a process that was killed: nothing is flushed
		host.wakeWaiters()
		host.mu.Unlock()
		host = next
		serve(host)
	}
	join(t, host, guest)
	if err := <-quarters; err != nil || !bytes.Equal(got, in) {
		t.Error("another stream came out")
	}
	defer guest.Close()
	if !bytes.Equal(<-heard, out) {
		t.Error("another stream went in")
	}
}

// TestAHostileEnd: it can break the tether, and nothing else.
func TestAHostileEnd(t *testing.T) {
	number := func(kind string, n uint64) []byte { return binary.BigEndian.AppendUint64([]byte(kind), n) }
	length := func(n uint32) []byte { return binary.BigEndian.AppendUint32([]byte{kindData}, n) }
	for name, says := range map[string][]byte{
		"no greeting":         []byte("SSH-2.0-x and so on, of that length"),
		"more than was sent":  number(magic, 10),
		"a length of nothing": append(number(magic, 0), length(0)...),
		"an endless frame":    append(number(magic, 0), length(1<<31)...),
		"an unknown kind":     append(number(magic, 0), 'x', 1, 2, 3),
		"what it can't have":  append(number(magic, 0), number("h", 7)...),
		"less than it had":    append(append(number(magic, 0), number("h", 3)...), number("h", 1)...),
	} {
		t.Run(name, func(t *testing.T) {
			x, y := pair(t)
			e := New()
			if name == "less than it had" {
				_, _ = e.Write([]byte("word"))
			}
			go func() {
				_, _ = y.Write(says)
				_, _ = io.Copy(io.Discard, y)
			}()
			err := e.Attach(x)
			if err == nil {
				_, err = e.Read(make([]byte, 10))
			}
			if !errors.Is(err, ErrBroken) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestNobodyReads: an end that is not read from keeps a window, and no more.
func TestNobodyReads(t *testing.T) {
	e := New()
	done := make(chan int, 1)
	go func() {
		n, _ := e.Write(make([]byte, 10*window))
		done <- n
	}()
	if err := e.waitUntil(func() bool { return len(e.pending) == window }); err != nil {
		t.Fatal(err)
	}
	_ = e.Close()
	if n := <-done; n != window {
		t.Errorf("it took %d bytes, of a window of %d", n, window)
	}
	if err := New().Restore(State{Pending: make([]byte, window+1)}); !errors.Is(err, ErrBroken) {
		t.Errorf("a state with more than a window: %v", err)
	}
}

// TestWhatComesOverALineThatWasLost: it is not counted, and not passed on, since the other end
// sends it again.
func TestWhatComesOverALineThatWasLost(t *testing.T) {
	for name, pass := range map[string]func(e *End, l *connection, p []byte) bool{
		"read": func(e *End, l *connection, p []byte) bool { return e.countReceived(l, len(p)) },
		"delivered": func(e *End, l *connection, p []byte) bool {
			var out bytes.Buffer
			return e.passData(l, &out, p) != nil || out.Len() > 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := New(), New()
			defer a.Close()
			defer b.Close()
			join(t, a, b)
			if _, err := b.Write([]byte("word")); err != nil {
				t.Fatal(err)
			}
			l, err := a.awaitLine()
			if err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 10)
			n, err := a.readData(l, buf)
			if err != nil {
				t.Fatal(err)
			}
			join(t, a, b)
			if pass(a, l, buf[:n]) {
				t.Error("it was taken for new")
			}
			got := make([]byte, 4)
			if _, err := io.ReadFull(a, got); err != nil || string(got) != "word" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestMoreThanWasSent: an end that says that it has what waits to be sent lies.
func TestMoreThanWasSent(t *testing.T) {
	e := New()
	if _, err := e.Write([]byte("word")); err != nil {
		t.Fatal(err)
	}
	l := &connection{from: bufio.NewReader(bytes.NewReader(binary.BigEndian.AppendUint64(nil, 4)))}
	e.line = l
	if err := e.readHeard(l); !errors.Is(err, ErrBroken) {
		t.Errorf("%v", err)
	}
}
