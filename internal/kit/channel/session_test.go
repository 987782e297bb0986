package channel

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a host session and whatever the test puts at the guest's end.
func pair(t *testing.T) (*Session, net.Conn) {
	t.Helper()
	hostEnd, guestFile, err := SocketPair()
	if err != nil {
		t.Fatal(err)
	}
	guestEnd, err := net.FileConn(guestFile)
	if err != nil {
		t.Fatal(err)
	}
	_ = guestFile.Close()
	host, err := NewHostSession(hostEnd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = host.Close()
		_ = guestEnd.Close()
	})
	return host, guestEnd
}

func sessions(t *testing.T) (host, guest *Session) {
	t.Helper()
	host, end := pair(t)
	guest, err := NewGuestSession(end)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guest.Close() })
	return host, guest
}

func TestFramesThenRawBytes(t *testing.T) {
	host, guest := sessions(t)
	data := make([]byte, 3<<20)
	_, _ = rand.Read(data)
	go func() {
		stream, err := guest.Accept()
		if err != nil {
			return
		}
		var call Call
		if err := stream.ReadJSON(FrameOpen, &call); err != nil {
			return
		}
		_ = stream.WriteJSON(FrameReply, Reply{OK: true, Text: string(call.Kind)})
		_, _ = stream.Raw().Write(data)
		_ = stream.CloseWrite()
		_ = stream.Close()
	}()
	stream, err := host.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.WriteJSON(FrameOpen, Call{Kind: CallPing}); err != nil {
		t.Fatal(err)
	}
	var reply Reply
	if err := stream.ReadJSON(FrameReply, &reply); err != nil || reply.Text != "ping" {
		t.Fatalf("%+v, %v", reply, err)
	}
	got, err := io.ReadAll(stream.Raw())
	if err != nil || sha256.Sum256(got) != sha256.Sum256(data) {
		t.Fatalf("%d of %d bytes, %v", len(got), len(data), err)
	}
	_ = stream.Close()
}

func TestSpliceHalfCloses(t *testing.T) {
	host, guest := sessions(t)
	farHost, farFile, err := SocketPair()
	if err != nil {
		t.Fatal(err)
	}
	far, err := net.FileConn(farFile)
	if err != nil {
		t.Fatal(err)
	}
	_ = farFile.Close()
	defer far.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if stream, err := host.Accept(); err == nil {
			Splice(stream, NewConn(farHost), nil)
		}
	}()
	stream, err := guest.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = stream.Raw().Write([]byte("question"))
	_ = stream.CloseWrite()
	question, err := io.ReadAll(far) // sees the half-close
	if err != nil || string(question) != "question" {
		t.Fatalf("%q, %v", question, err)
	}
	_, _ = far.Write([]byte("answer"))
	_ = far.Close()
	answer, err := io.ReadAll(stream.Raw())
	if err != nil || string(answer) != "answer" {
		t.Fatalf("%q, %v", answer, err)
	}
	<-done
	if n := host.Streams(); n != 0 {
		t.Errorf("%d streams left", n)
	}
}

func TestClosedStreamIsFreedThoughThePeerWritesOn(t *testing.T) {
	host, guest := sessions(t)
	stream, err := guest.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := host.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = accepted.Close()
	if _, err := stream.Raw().Write(make([]byte, 4*HostWindow)); err != nil {
		t.Fatalf("the peer got stuck: %v", err)
	}
	_ = stream.Close()
	_, _ = io.Copy(io.Discard, stream.Raw())
}

func TestOpenGivesUpWithItsContext(t *testing.T) {
	host, _ := pair(t) // a guest that never accepts
	for range Backlog {
		if _, err := host.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := host.Open(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestHostileFraming: each guest breaks one rule of the multiplexer's framing.
func TestHostileFraming(t *testing.T) {
	header := func(version, kind byte, flags uint16, id, length uint32) []byte {
		return []byte{
			version, kind, byte(flags >> 8), byte(flags),
			byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id),
			byte(length >> 24), byte(length >> 16), byte(length >> 8), byte(length),
		}
	}
	tests := []struct {
		name string
		wire []byte
		ends bool
	}{
		{"control: an honest open", header(0, 1, 1, 2, 0), false},
		{"control: data of a closed stream", append(header(0, 0, 0, 8, 3), "abc"...), false},
		{"garbage", []byte("GET / HTTP/1.1\r\n\r\n"), true},
		{"another version", header(1, 0, 0, 2, 0), true},
		{"another type", header(0, 4, 0, 2, 0), true},
		{"ping", header(0, 2, 1, 0, 7), true},
		{"the host's half of the ids", header(0, 1, 1, 3, 0), true},
		{"stream 0", header(0, 1, 1, 0, 0), true},
		{"an open twice", append(header(0, 1, 1, 2, 0), header(0, 1, 1, 2, 0)...), true},
		{"more than the window", append(header(0, 1, 1, 2, 0), header(0, 0, 0, 2, 1<<31)...), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			host, end := pair(t)
			if _, err := end.Write(tt.wire); err != nil {
				t.Fatal(err)
			}
			if tt.ends {
				<-host.Done()
				return
			}
			// The session lives if a stream opened after it is accepted.
			if _, err := end.Write(header(0, 1, 1, 10, 0)); err != nil {
				t.Fatal(err)
			}
			for {
				stream, err := host.Accept()
				if err != nil {
					t.Fatal(err)
				}
				if s, ok := stream.Raw().(interface{ StreamID() uint32 }); ok && s.StreamID() == 10 {
					break
				}
			}
		})
	}
}

func TestTooManyStreamsEndTheSession(t *testing.T) {
	host, end := pair(t)
	go func() { _, _ = io.Copy(io.Discard, end) }()
	accepted := 0
	for i := range uint32(2 * MaxStreams) {
		id := 2 + 2*i
		if _, err := end.Write([]byte{0, 1, 0, 1, byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id), 0, 0, 0, 0}); err != nil {
			break
		}
		if _, err := host.Accept(); err != nil {
			break
		}
		accepted++
	}
	if accepted != MaxStreams { // without the bound there is no end to wait for
		t.Fatalf("%d streams were accepted, not %d", accepted, MaxStreams)
	}
	<-host.Done()
}

// TestTheEndWakesEverybody who waits in a read, or in a write for the window.
func TestTheEndWakesEverybody(t *testing.T) {
	for name, end := range map[string]func(host, guest *Session){
		"closed here":         func(host, _ *Session) { _ = host.Close() },
		"closed by the guest": func(_, guest *Session) { _ = guest.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			host, guest := sessions(t)
			var waiting, ready sync.WaitGroup
			for i := range 200 {
				out, err := guest.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				in, err := host.Accept()
				if err != nil {
					t.Fatal(err)
				}
				ready.Add(1)
				if _, err := in.Raw().Write([]byte("x")); err != nil {
					t.Fatal(err)
				}
				if _, err := out.Raw().Read(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				waiting.Go(func() {
					ready.Done()
					_, _ = io.Copy(io.Discard, in.Raw())
				})
				if i%16 == 0 {
					waiting.Go(func() { _, _ = in.Raw().Write(make([]byte, 2*GuestWindow)) })
				}
			}
			ready.Wait()
			end(host, guest)
			waiting.Wait()
			<-host.Done()
		})
	}
}

func TestWhatArrivedCanBeReadAfterTheEnd(t *testing.T) {
	host, guest := sessions(t)
	out, err := guest.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in, err := host.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Raw().Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(in.Raw(), make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	_ = host.Close()
	_ = in.Raw().SetDeadline(time.Time{}) // changes nothing any more
	if rest, err := io.ReadAll(in.Raw()); err != nil || string(rest) != "words" {
		t.Errorf("%q, %v", rest, err)
	}
	if _, err := in.Raw().Write([]byte("x")); err == nil {
		t.Error("a write after the end succeeded")
	}
}

func FuzzGuard(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x03abc\x00\x01\x00\x01\x00\x00\x00\x04\x00\x00\x00\x00"), 5)
	f.Add([]byte("\x00\x02\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"), 1)
	f.Fuzz(func(t *testing.T, wire []byte, cut int) {
		whole, parts := &guard{held: newSessionMemory(new(Memory), nil)}, &guard{held: newSessionMemory(new(Memory), nil)}
		want := whole.inspect(wire)
		cut = max(0, min(cut, len(wire)))
		got := parts.inspect(wire[:cut])
		if got == nil {
			got = parts.inspect(wire[cut:])
		}
		if (want == nil) != (got == nil) {
			t.Errorf("whole: %v; in two parts: %v", want, got)
		}
	})
}

func BenchmarkGuestToHost(b *testing.B) {
	hostEnd, guestFile, err := SocketPair()
	if err != nil {
		b.Fatal(err)
	}
	guestEnd, _ := net.FileConn(guestFile)
	_ = guestFile.Close()
	host, _ := NewHostSession(hostEnd)
	guest, _ := NewGuestSession(guestEnd)
	defer host.Close()
	defer guest.Close()
	out, _ := guest.Open(b.Context())
	in, err := host.Accept()
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		payload := make([]byte, 32<<10)
		var err error
		for err == nil {
			err = out.WriteFrame(FrameStdout, payload)
		}
	}()
	b.SetBytes(32 << 10)
	for b.Loop() {
		if _, _, err := in.ReadFrame(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestOpeningPilesUpNothing: behind a guest that accepts nothing, who wants a stream and gives up
// leaves nothing, however many do. Those that it does accept are opened.
func TestOpeningPilesUpNothing(t *testing.T) {
	host, _ := pair(t)
	for range Backlog {
		if _, err := host.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := runtime.NumGoroutine()
	for range 10 * opening {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err := host.Open(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
	}
	if more := runtime.NumGoroutine() - before; more > opening+10 {
		t.Errorf("%d goroutines are left of %d that gave up", more, 10*opening)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := host.Open(t.Context())
		waiting <- err
	}()
	_ = host.Close()
	if err := <-waiting; err == nil {
		t.Error("a stream of a session that has ended")
	}
}
