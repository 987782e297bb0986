package channel

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// frame is one of the multiplexer's.
func frame(kind byte, flags uint16, id uint32, payload string) []byte {
	f := []byte{muxVersion, kind, 0, 0}
	binary.BigEndian.PutUint16(f[2:], flags)
	f = binary.BigEndian.AppendUint32(f, id)
	f = binary.BigEndian.AppendUint32(f, uint32(len(payload)))
	return append(f, payload...)
}

func marker(fill byte) []byte {
	return append([]byte(markerMagic), bytes.Repeat([]byte{fill}, nonceSize)...)
}

// scripted is a connection of which each Read gives the next piece.
type scripted struct {
	io.Reader
	wrote bytes.Buffer
}

func (s *scripted) Write(p []byte) (int, error) { return s.wrote.Write(p) }
func (*scripted) Close() error                  { return nil }

// TestMarkerAtAnySplit: wherever the pieces end, what comes before a marker are
// frames, the marker is found, and what follows is kept for the next session.
func TestMarkerAtAnySplit(t *testing.T) {
	frames := slices.Concat(
		frame(muxData, 0, 1, "\xffcofferdam\x01\r0123456789abcdef"), // a marker as a payload is none
		frame(1, 0, 1, ""), frame(muxData, 0, 3, ""), frame(muxGoAway, 0, 0, ""),
	)
	after := frame(muxData, 1, 5, "next")
	all := slices.Concat(frames, marker('n'), after)
	for cut := range len(all) + 1 {
		pieces := io.MultiReader(bytes.NewReader(all[:cut]), bytes.NewReader(all[cut:]))
		checkMarker(t, pieces, frames, after)
	}
	checkMarker(t, iotest.OneByteReader(bytes.NewReader(all)), frames, after)
}

func checkMarker(t *testing.T, from io.Reader, frames, after []byte) {
	t.Helper()
	b := &branch{trunk: &trunk{conn: &scripted{Reader: from}}}
	var read []byte
	b.renew = func(m []byte) error { read = m; return b.answerMarker(m) }
	got, err := io.ReadAll(b)
	if !errors.Is(err, ErrReset) || !bytes.Equal(got, frames) || !bytes.Equal(read, marker('n')) {
		t.Fatalf("%d of %d bytes of frames, marker %q, %v", len(got), len(frames), read, err)
	}
	if _, err := b.Write([]byte("late")); !errors.Is(err, ErrReset) {
		t.Fatalf("a write of the old session: %v", err)
	}
	next := &branch{trunk: b.trunk}
	rest, err := io.ReadAll(next)
	if err != nil || !bytes.Equal(rest, after) {
		t.Fatalf("the next session reads %q, %v", rest, err)
	}
	if s, ok := b.conn.(*scripted); !ok || !bytes.Equal(s.wrote.Bytes(), marker('n')) {
		t.Fatalf("the answer is %q", s.wrote.Bytes())
	}
}

// TestWhatIsNoMarker: neither frame nor marker ends the session.
func TestWhatIsNoMarker(t *testing.T) {
	for name, tt := range map[string]struct {
		bytes []byte
		want  error
	}{
		"another version":      {append(frame(1, 0, 1, ""), 1), errNotFrames},
		"a marker that breaks": {append(frame(1, 0, 1, ""), "\xffcofferdaN"...), errNotFrames},
		"half a marker":        {marker('n')[:markerSize-1], io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			b := &branch{trunk: &trunk{conn: &scripted{Reader: iotest.DataErrReader(bytes.NewReader(tt.bytes))}}}
			b.renew = func([]byte) error { t.Error("it was taken for a marker"); return nil }
			var err error
			for buf := make([]byte, 7); err == nil; {
				_, err = b.Read(buf)
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// copied is a guest with a session that its host is to take over as a copy's.
func copied(t *testing.T) (old *Session, guest *Session, guestEnd *swapped, w *Wire) {
	t.Helper()
	host, file := plug(t)
	guestEnd = &swapped{newFrozenGuest(file)}
	guest, err := NewGuestSession(guestEnd)
	if err != nil {
		t.Fatal(err)
	}
	wire, err := NewWire(host)
	if err != nil {
		t.Fatal(err)
	}
	old, err = NewHostSession(wire)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(old.Close(), guest.Close()) })
	return old, guest, guestEnd, wire
}

// swapped can be closed while it has no connection.
type swapped struct{ *frozenGuest }

func (s *swapped) Close() error {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn == nil {
		return nil
	}
	return conn.Close()
}

// takeOver gives the guest another host, as a restore of a copy does.
func takeOver(t *testing.T, w *Wire, g *swapped) *Session {
	t.Helper()
	if err := w.Quiesce(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.freeze()
	_ = w.Close() // what the guest wrote last is the source's
	host, guest := plug(t)
	fresh := UnpluggedWire()
	session, err := NewHostSession(fresh)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	g.thaw(guest)
	if err := fresh.Renew(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	return session
}

// TestTakeOver: streams in the middle of much data, both ways, fail with
// ErrReset; new ones carry what they should; an Accept goes on.
func TestTakeOver(t *testing.T) {
	for range 20 {
		takeOverInTheMiddle(t)
	}
}

func takeOverInTheMiddle(t *testing.T) {
	t.Helper()
	old, guest, end, w := copied(t)
	var flows, echoing sync.WaitGroup
	defer echoing.Wait()
	accepted := make(chan *Conn, 8)
	echoing.Go(func() {
		for {
			stream, err := guest.Accept()
			if err != nil {
				return
			}
			accepted <- stream
		}
	})
	for range 4 {
		out, err := old.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		in := <-accepted
		flows.Go(func() { _ = endless(out.Raw()) })
		flows.Go(func() { _, _ = io.Copy(io.Discard, struct{ io.Reader }{out.Raw()}) })
		flows.Go(func() { wantReset(t, "write", endless(in.Raw())) })
		flows.Go(func() {
			_, err := io.Copy(io.Discard, struct{ io.Reader }{in.Raw()})
			wantReset(t, "read", err)
		})
	}
	session := takeOver(t, w, end)
	out, err := session.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in := <-accepted
	var both sync.WaitGroup
	both.Go(func() { inSequence(t, in.Raw(), 1<<20) })
	if err := sequence(out.Raw(), 1<<20, 1); err != nil {
		t.Error(err)
	}
	both.Wait()
	back, err := guest.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := back.Raw().Write([]byte("hello")); err != nil {
		t.Error(err)
	}
	stream, err := session.Accept()
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(stream.Raw(), got); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	_ = old.Close()
	_ = session.Close()
	_ = guest.Close()
	flows.Wait()
}

// endless writes until that fails.
func endless(to io.Writer) error {
	for buf := make([]byte, 100_003); ; {
		if _, err := to.Write(buf); err != nil {
			return err
		}
	}
}

func wantReset(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, ErrReset) {
		t.Errorf("a %s in the middle of a reset: %v", what, err)
	}
}

// TestResetAgain: a copy of a copy.
func TestResetAgain(t *testing.T) {
	old, guest, end, w := copied(t)
	stream, err := old.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for range 5 {
		session := takeOver(t, w, end)
		out, err := session.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := out.WriteJSON(FrameOpen, Call{Kind: CallPing}); err != nil {
			t.Fatal(err)
		}
		for {
			in, err := guest.Accept()
			if err != nil {
				t.Fatal(err)
			}
			var call Call
			if err := in.ReadJSON(FrameOpen, &call); err == nil && call.Kind == CallPing {
				break
			}
		}
		// The next copy is of this one.
		host, conn := plug(t)
		end.freeze()
		end.thaw(conn)
		w = UnpluggedWire()
		if _, err := NewHostSession(w); err != nil {
			t.Fatal(err)
		}
		if err := w.Renew(t.Context(), host); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
}

// TestGuestThatDoesNotAnswer: nothing hangs, and the wire can be closed. The caller ends what only time would end.
func TestGuestThatDoesNotAnswer(t *testing.T) {
	asked := func(c net.Conn) { _, _ = io.ReadFull(c, make([]byte, markerSize)) }
	for name, guestDoes := range map[string]func(c net.Conn, giveUp func()){
		"silence": func(c net.Conn, giveUp func()) { asked(c); giveUp() },
		"an end":  func(c net.Conn, _ func()) { _ = c.Close() },
		"another nonce": func(c net.Conn, giveUp func()) {
			asked(c)
			_, _ = c.Write(marker('x'))
			giveUp()
		},
		"garbage without an end": func(c net.Conn, _ func()) {
			junk := bytes.Repeat([]byte("\xffcofferdam\x01\r"), 5000)
			for {
				if _, err := c.Write(junk); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			host, guest := plug(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var all sync.WaitGroup
			all.Go(func() { guestDoes(guest, cancel) })
			w := UnpluggedWire()
			if err := w.Renew(ctx, host); !errors.Is(err, fault.ErrUnavailable) {
				t.Errorf("%v", err)
			}
			if _, err := host.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the connection was not closed: %v", err)
			}
			all.Wait()
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRenewNeedsAnUnpluggedWire(t *testing.T) {
	w, _ := newWire(t)
	host, guest := plug(t)
	var all sync.WaitGroup
	all.Go(func() {
		m := make([]byte, markerSize)
		_, _ = io.ReadFull(guest, m)
		_, _ = guest.Write(m)
	})
	if err := w.Renew(t.Context(), host); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("%v", err)
	}
	all.Wait()
}

// TestQuietBetweenFrames: a wire under a session is never quiet within a frame.
func TestQuietBetweenFrames(t *testing.T) {
	host, guest := plug(t)
	w, err := NewWire(host)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.markFramed()
	var all, reading sync.WaitGroup
	var seen framing
	var mu sync.Mutex // guards seen
	reading.Go(func() {
		buf := make([]byte, 4099)
		for {
			n, err := guest.Read(buf)
			mu.Lock()
			if got := seen.passFrames(buf[:n]); got != n {
				t.Errorf("byte %d is no frame's", got)
			}
			mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	stop := make(chan struct{})
	all.Go(func() {
		payload := string(bytes.Repeat([]byte{7}, 300<<10)) // more than a socket holds
		for i := range uint32(1 << 30) {
			f := frame(muxData, 0, i, payload)
			for _, part := range [][]byte{f[:muxHeaderSize], f[muxHeaderSize:]} { // as the multiplexer does
				if _, err := w.Write(part); err != nil {
					return
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for range 200 {
		if err := w.Quiesce(t.Context()); err != nil {
			t.Fatal(err)
		}
		for { // what was read from the socket is followed a moment later
			mu.Lock()
			left := seen.leftOfFrame()
			mu.Unlock()
			if left == 0 {
				break
			}
			if t.Context().Err() != nil {
				t.Fatalf("quiet with %d bytes of a frame to come", left)
			}
		}
		w.Resume()
	}
	close(stop)
	all.Wait()
	_ = w.Close()
	reading.Wait()
}

// TestQuiesceWithinAFrameThatNobodyReads: it gives up, and the frame goes on.
func TestQuiesceWithinAFrameThatNobodyReads(t *testing.T) {
	host, guest := plug(t)
	w, err := NewWire(host)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.markFramed()
	sent := frame(muxData, 0, 1, string(make([]byte, 8<<20)))
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := w.Write(sent); err != nil {
			t.Error(err)
		}
	})
	for {
		if n, err := outgoing(host.(hostEnd)); err != nil {
			t.Fatal(err)
		} else if n > 64<<10 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Quiesce(ctx); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(guest, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("the frame did not arrive: %v", err)
	}
	all.Wait()
}

// FuzzFraming: the follower of a guest's input sees the same however it is cut,
// and stops only between frames, at what is none.
func FuzzFraming(f *testing.F) {
	f.Add(slices.Concat(frame(muxData, 0, 2, "abc"), marker('x')), 5)
	f.Add(frame(muxPing, 1, 0, ""), 1)
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 1}, 12)
	f.Fuzz(func(t *testing.T, wire []byte, cut int) {
		var whole, parts framing
		want := whole.passFrames(wire)
		cut = max(0, min(cut, len(wire)))
		got := parts.passFrames(wire[:cut])
		if got == cut {
			got += parts.passFrames(wire[cut:])
		}
		if got != want || parts != whole {
			t.Errorf("whole: %d, %+v; in two parts: %d, %+v", want, whole, got, parts)
		}
		if want < len(wire) && (whole.leftOfFrame() != 0 || wire[want] == muxVersion) {
			t.Errorf("it stopped at %d within a frame, or at one", want)
		}
	})
}

// FuzzGuestsInput: whatever a host sends, nothing is lost or made up before the
// first marker.
func FuzzGuestsInput(f *testing.F) {
	f.Add(slices.Concat(frame(muxData, 0, 2, "abc"), marker('x'), frame(1, 0, 2, "")), 3)
	f.Add(marker('y'), 1)
	f.Fuzz(func(t *testing.T, wire []byte, size int) {
		var follow framing
		frames := wire[:follow.passFrames(wire)]
		b := &branch{trunk: &trunk{conn: &scripted{Reader: bytes.NewReader(wire)}}}
		renewed := false
		b.renew = func(m []byte) error { renewed = true; return b.answerMarker(m) }
		var got []byte
		var err error
		for buf := make([]byte, 1+size&0xff); err == nil; {
			var n int
			n, err = b.Read(buf)
			got = append(got, buf[:n]...)
		}
		if !bytes.Equal(got, frames) {
			t.Errorf("%d bytes instead of %d", len(got), len(frames))
		}
		rest := wire[len(frames):]
		if isMarker := len(rest) >= markerSize && bytes.HasPrefix(rest, []byte(markerMagic)); isMarker != renewed {
			t.Errorf("a marker: %t; renewed: %t", isMarker, renewed)
		}
		if renewed && !bytes.Equal(append(bytes.Clone(b.held), leftIn(b)...), rest[markerSize:]) {
			t.Error("what follows the marker is not kept")
		}
	})
}

func leftIn(b *branch) []byte {
	all, _ := io.ReadAll(struct{ io.Reader }{b.conn})
	return all
}

// TestStaleBytesBeforeAnEcho: what a copy's source had begun to write is thrown away wherever
// the pieces end, and what follows the echo is kept. A guest that writes on and on is given up
// at the bound, before the echo that comes after it.
func TestStaleBytesBeforeAnEcho(t *testing.T) {
	echo := marker('n')
	stale := append(bytes.Repeat([]byte("stale"), 100), marker('o')...) // one that was not sent is stale, too
	all := slices.Concat(stale, echo, []byte("next"))
	for cut := range len(all) + 1 {
		rest, err := skipTo(io.MultiReader(bytes.NewReader(all[:cut]), bytes.NewReader(all[cut:])), echo)
		want := "next"
		if cut >= len(stale)+len(echo) { // what comes later is not waited for
			want = want[:cut-len(stale)-len(echo)]
		}
		if err != nil || string(rest) != want {
			t.Fatalf("cut at %d: %q, %v", cut, rest, err)
		}
	}
	if rest, err := skipTo(iotest.OneByteReader(bytes.NewReader(all)), echo); err != nil || len(rest) != 0 {
		t.Errorf("byte by byte: %q, %v", rest, err)
	}
	for name, c := range map[string]struct {
		stale int
		found bool
	}{"a piece less than the bound": {maxStale - 128<<10, true}, "more than it": {maxStale + 128<<10, false}} {
		read := &countedReader{Reader: io.MultiReader(io.LimitReader(zeros{}, int64(c.stale)), bytes.NewReader(echo))}
		if _, err := skipTo(read, echo); (err == nil) != c.found {
			t.Errorf("%s: %v", name, err)
		}
		if read.n > maxStale+128<<10 {
			t.Errorf("%s: %d bytes were read", name, read.n)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

type countedReader struct {
	io.Reader
	n int
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}
