package admission

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// connect gives the two ends of a real Unix socket connection.
func connect(tb testing.TB) (daemon, gateway net.Conn) {
	tb.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(tb, err)
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "door")
		ends[i], err = net.FileConn(f)
		must(tb, errors.Join(err, f.Close()))
	}
	return ends[0], ends[1]
}

// serve opens a door and returns its client, and what Serve returned.
func serve(tb testing.TB, door Door) (*Client, <-chan error) {
	tb.Helper()
	daemon, gateway := connect(tb)
	ctx, cancel := context.WithCancel(tb.Context())
	served := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { served <- Serve(ctx, daemon, door) })
	c := NewClient(gateway)
	tb.Cleanup(func() {
		c.Close()
		cancel()
		wg.Wait()
	})
	return c, served
}

func TestTheDoorIsTheSameOverAConnection(t *testing.T) {
	direct, remote := newHouse(t, Limits{}), newHouse(t, Limits{})
	cert := Certificate{ChainPEM: []byte("chain\x00"), KeyPEM: []byte("key")}
	for _, h := range []*house{direct, remote} {
		h.config.Trust = func(_ context.Context, hosts []string) (Certificate, error) {
			if len(hosts) != 1 {
				return Certificate{}, errors.New("a secret of the inside")
			}
			return cert, nil
		}
	}
	client, _ := serve(t, remote)
	a, b := conversation(t, direct), conversation(t, client)
	for i := range a {
		if diff := cmp.Diff(a[i], b[i]); diff != "" {
			t.Errorf("answer %d differs (-direct +remote):\n%s", i, diff)
		}
	}
	if len(a) < 14 {
		t.Errorf("the conversation had %d answers", len(a))
	}
}

// conversation asks a door everything, and returns the answers without what
// differs by nature: ids and times.
func conversation(t *testing.T, d Door) (said []string) {
	t.Helper()
	ctx := t.Context()
	note := func(v any, err error) {
		text := fmt.Sprintf("%+v", v)
		for _, c := range categories() {
			if errors.Is(err, c.category) {
				text = "fault " + c.category.Error() + ": " + err.Error()
			}
		}
		said = append(said, text)
	}
	index := func(ask IndexAsk) {
		a, err := d.Index(ctx, ask)
		a.RequestID = fmt.Sprint(len(a.RequestID))
		note(a, err)
	}
	answer := func(a Answer, err error) {
		a.RequestID = fmt.Sprint(len(a.RequestID))
		note(a, err)
	}
	page := indexOf("requests", "d", wheel("requests", "2.31.0"), wheel("requests", "2.33.0"))
	index(indexOf("requests", "d"))
	for range 3 {
		index(page)
	}
	index(indexOf("requests", "d"))
	index(IndexAsk{Sandbox: "sb1", Package: python("empty", ""), IndexDigest: "e", Files: []File{}})
	index(IndexAsk{Sandbox: "sb1", Package: python("Bad_", ""), IndexDigest: "e"})
	note(nil, d.Edges(ctx, "sb1", python("requests", "2.31.0"), []Requirement{{Name: "idna", Specifier: "<4"}}))
	note(nil, d.Edges(ctx, "sb1", python("other", "1"), nil))
	served, err := d.Artifact(ctx, askFor("requests", "2.31.0", true))
	note(served.Decision, err)
	note(nil, d.Aborted(ctx, "sb1", served.Seq, 7))
	note(nil, d.Aborted(ctx, "sb1", 1234, 7))
	sent, err := d.Artifact(ctx, askFor("requests", "2.31.0", true))
	note(sent.Decision, err)
	note(nil, d.Sent(ctx, "sb1", sent.Seq))
	note(nil, d.Sent(ctx, "sb1", sent.Seq))
	answer(d.Artifact(ctx, askFor("numpy", "2.0", false)))
	answer(d.Name(ctx, NameAsk{"sb1", "x.example", 443}))
	answer(d.Failed(ctx, Failure{Sandbox: "sb1", Package: python("p", "1"), ResolvedBy: policy.ByCanonical, Reason: "bad"}))
	list, err := d.Refusals(ctx, "sb1", "", 2)
	for i := range list {
		list[i].Time, list[i].RequestID = noon(), ""
	}
	note(list, err)
	_, err = d.Refusals(ctx, "nobody", "", 2)
	note(nil, err)
	cert, err := d.Trust(ctx, []string{"index.example"})
	note(cert, err)
	return said
}

func TestCausesStayInTheDaemon(t *testing.T) {
	h := newHouse(t, Limits{})
	h.config.Trust = func(context.Context, []string) (Certificate, error) {
		return Certificate{}, errors.New("a secret path")
	}
	c, _ := serve(t, h)
	if _, err := c.Trust(t.Context(), nil); err == nil || err.Error() != "the daemon could not answer" {
		t.Errorf("the error is %v", err)
	}
}

// stuckDoor is a door whose Artifact waits for its context's end.
type stuckDoor struct {
	Door
	begun chan struct{}
	ended chan error
}

func (d stuckDoor) Artifact(ctx context.Context, _ ArtifactAsk) (Answer, error) {
	close(d.begun)
	<-ctx.Done()
	d.ended <- ctx.Err()
	return Answer{}, ctx.Err()
}

func TestACancelledCallIsCancelledInTheDaemon(t *testing.T) {
	h := newHouse(t, Limits{})
	d := stuckDoor{Door: h, begun: make(chan struct{}), ended: make(chan error, 1)}
	c, _ := serve(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Artifact(ctx, askFor("requests", "2.31.0", true))
		failed <- err
	}()
	<-d.begun
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the call gave %v", err)
	}
	if err := <-d.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the daemon's call ended with %v", err)
	}
	if _, err := c.Refusals(t.Context(), "sb1", "", 1); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestALostConnectionFailsEveryCall(t *testing.T) {
	h := newHouse(t, Limits{})
	d := stuckDoor{Door: h, begun: make(chan struct{}), ended: make(chan error, 1)}
	daemon, gateway := connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, daemon, d) }()
	c := NewClient(gateway)
	defer c.Close()
	if _, err := c.Refusals(t.Context(), "sb1", "", 1); err != nil {
		t.Fatal(err) // the positive control
	}
	failed := make(chan error, 1)
	go func() {
		_, err := c.Artifact(t.Context(), askFor("requests", "2.31.0", true))
		failed <- err
	}()
	<-d.begun
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve ended with %v", err)
	}
	if err := <-failed; !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("the call under way gave %v", err)
	}
	<-c.Done()
	if a, err := c.Artifact(t.Context(), askFor("requests", "2.31.0", true)); !errors.Is(err, fault.ErrUnavailable) || a.Decision.Allowed() {
		t.Errorf("a call without a connection: %+v, %v", a, err)
	}
}

func TestABadGatewayIsCutOff(t *testing.T) {
	index, err := os.ReadFile("wire.go") // any bytes that are no JSON
	must(t, err)
	for name, message := range map[string][]byte{
		"unknown call":     frame(99, []byte("{}")),
		"too long":         {0xff, 0xff, 0xff, 0xff, byte(callIndex)},
		"too long a name":  binary.BigEndian.AppendUint32(nil, smallMessage+2),
		"length zero":      {0, 0, 0, 0, byte(callName)},
		"no JSON":          frame(callIndex, index),
		"unknown member":   frame(callName, []byte(`{"sandbox":"sb1","name":"x","allow":true}`)),
		"duplicate member": frame(callName, []byte(`{"sandbox":"sb1","sandbox":"sb2","name":"x"}`)),
		"another case":     frame(callName, []byte(`{"Sandbox":"sb1","name":"x"}`)),
		"invalid UTF-8":    frame(callName, []byte("{\"sandbox\":\"sb1\",\"name\":\"\xff\"}")),
		"trailing":         frame(callName, []byte(`{"sandbox":"sb1","name":"x"}{}`)),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, Limits{})
			c, _ := serve(t, h)
			stream, err := c.session.OpenStream()
			must(t, err)
			if len(message) == 4 {
				message = append(message, byte(callName))
			}
			_, err = stream.Write(message)
			must(t, err)
			m := incoming{conn: stream, limit: func(byte) int { return maxMessage }}
			kind, n, err := m.head()
			if err == nil {
				var buf bytes.Buffer
				must(t, m.body(&buf, n))
				if err := errorOf(status(kind), buf.Bytes()); status(kind) == statusDone || !errors.Is(err, fault.ErrInvalid) {
					t.Errorf("it was answered %d: %v", kind, err)
				}
			}
			if n := len(h.records(t)); n != 0 {
				t.Errorf("%d records", n)
			}
			if _, err := c.Name(t.Context(), NameAsk{Sandbox: "sb1", Name: "x"}); err != nil {
				t.Errorf("a good call on another stream: %v", err)
			}
		})
	}
}

func frame(m method, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)+1))
	return append(append(out, byte(m)), body...)
}

func TestWhoSpeaksAnotherLanguageEndsServe(t *testing.T) {
	daemon, gateway := connect(t)
	served := make(chan error, 1)
	go func() { served <- Serve(t.Context(), daemon, newHouse(t, Limits{})) }()
	_, err := gateway.Write([]byte("GET / HTTP/1.1\r\n\r\n and more"))
	must(t, err)
	<-served
	gateway.Close()
}

func TestTooManyStreamsAreRefused(t *testing.T) {
	c, _ := serve(t, newHouse(t, Limits{}))
	var streams []*yamux.Stream
	for range maxStreams + maxWaits {
		s, err := c.session.OpenStream()
		must(t, err)
		_, err = s.Write([]byte{0}) // a message that never ends
		must(t, err)
		streams = append(streams, s)
	}
	if _, err := c.Name(t.Context(), NameAsk{Sandbox: "sb1", Name: "x"}); err == nil {
		t.Error("a stream past the limit was served")
	}
	for _, s := range streams {
		must(t, s.Close())
	}
}

func TestConcurrentCallsOverOneConnection(t *testing.T) {
	h := newHouse(t, Limits{})
	c, _ := serve(t, h)
	var wg sync.WaitGroup
	for w := range 100 {
		wg.Go(func() {
			for i := range 5 {
				a, err := c.Artifact(t.Context(), askFor("requests", "2.31.0", true))
				if err != nil || !a.Decision.Allowed() {
					t.Errorf("%d/%d: %+v, %v", w, i, a, err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(h.records(t, audit.Served)); n != 500 {
		t.Errorf("%d served", n)
	}
}

func FuzzIncoming(f *testing.F) {
	f.Add(frame(callName, []byte(`{"sandbox":"sb1","name":"x"}`)))
	f.Add(frame(callIndex, []byte(`{"ask":{"sandbox":"sb1","package":{"ecosystem":"python","name":"x"},"source_url":"","index_digest":"d","files":[]}}`)))
	f.Add(frame(callArtifact, []byte(`{}`)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	controller := New(Config{Log: nothingLog{}})
	must(f, controller.Register(Run{Sandbox: "sb1", Run: "r", Policy: parse(f, document)}))
	s := &server{door: controller, large: make(gate, 1)}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, b := net.Pipe()
		go func() {
			b.Write(data)
			b.Close()
		}()
		defer a.Close()
		m := incoming{conn: a, limit: func(kind byte) int { return method(kind).limit() }, patience: messageTime}
		kind, n, err := m.head()
		if err != nil {
			return
		}
		var buf bytes.Buffer
		if m.body(&buf, n) != nil {
			return
		}
		answer, err := s.dispatch(t.Context(), call{method: method(kind), body: buf.Bytes()})
		var out bytes.Buffer
		if err == nil && encodeMessage(&out, 0, answer) != nil {
			t.Fatalf("an answer can't be sent: %+v", answer)
		}
	})
}

// nothingLog refuses to record.
type nothingLog struct{ audit.Log }

func (nothingLog) Append(context.Context, audit.Record) (audit.Record, error) {
	return audit.Record{}, fault.New(fault.ErrUnavailable, "there is no log")
}

func bigIndex(n int) IndexAsk {
	var files []File
	for i := range n {
		files = append(files, wheel("requests", fmt.Sprintf("%d.%d.%d", i/1000, i/10%100, i%10)))
	}
	return indexOf("requests", "big", files...)
}

func BenchmarkIndexColdDirect(b *testing.B) {
	h := newHouse(b, Limits{})
	ask := bigIndex(3000)
	for i := 0; b.Loop(); i++ {
		ask.IndexDigest = fmt.Sprint(i)
		if _, err := h.Index(b.Context(), ask); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIndexWarmDirect(b *testing.B) { benchIndex(b, newHouse(b, Limits{})) }

func BenchmarkIndexWarmRemote(b *testing.B) {
	c, _ := serve(b, newHouse(b, Limits{}))
	benchIndex(b, c)
}

func benchIndex(b *testing.B, d Door) {
	b.Helper()
	if _, err := d.Index(b.Context(), bigIndex(3000)); err != nil {
		b.Fatal(err)
	}
	ask := indexOf("requests", "big")
	for b.Loop() {
		a, err := d.Index(b.Context(), ask)
		if err != nil || len(a.OfFile) != 3000 {
			b.Fatal(err, len(a.OfFile))
		}
	}
}

func BenchmarkVerdictDirect(b *testing.B) { benchVerdict(b, newHouse(b, Limits{}), false) }

func BenchmarkVerdictRemote(b *testing.B) {
	c, _ := serve(b, newHouse(b, Limits{}))
	benchVerdict(b, c, false)
}

func BenchmarkServeDirect(b *testing.B) { benchVerdict(b, newHouse(b, Limits{Records: 1 << 30}), true) }

func BenchmarkServeRemote(b *testing.B) {
	c, _ := serve(b, newHouse(b, Limits{Records: 1 << 30}))
	benchVerdict(b, c, true)
}

func benchVerdict(b *testing.B, d Door, serve bool) {
	b.Helper()
	ask := askFor("requests", "2.31.0", serve)
	for b.Loop() {
		if a, err := d.Artifact(b.Context(), ask); err != nil || !a.Decision.Allowed() {
			b.Fatal(a, err)
		}
	}
}
