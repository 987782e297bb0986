package door

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// plainDoor counts what it is asked, and answers with nothing.
type plainDoor struct {
	asked atomic.Int64
}

func (d *plainDoor) Index(context.Context, IndexAsk) (IndexAnswer, error) {
	d.asked.Add(1)
	return IndexAnswer{Epoch: "e", Verdicts: []policy.Decision{}, OfFile: []int{}}, nil
}

func (d *plainDoor) Owner(context.Context, OwnerAsk) (OwnerAnswer, error) {
	d.asked.Add(1)
	return OwnerAnswer{}, nil
}

func (d *plainDoor) Judge(context.Context, JudgeAsk) (Answer, error) {
	d.asked.Add(1)
	return Answer{}, nil
}

func (d *plainDoor) Outline(context.Context, OutlineAsk) (Answer, error) {
	d.asked.Add(1)
	return Answer{}, nil
}

func (d *plainDoor) Preview(context.Context, PreviewAsk) (Answer, error) {
	d.asked.Add(1)
	return Answer{}, nil
}

func (d *plainDoor) Walk(context.Context, WalkAsk) (Answer, error) {
	d.asked.Add(1)
	return Answer{}, nil
}

func (d *plainDoor) Await(context.Context, AwaitAsk) (Answer, error) {
	d.asked.Add(1)
	return Answer{}, nil
}

func (d *plainDoor) Serve(context.Context, ServeAsk) (Answer, error) {
	d.asked.Add(1)
	return Answer{}, nil
}

func (d *plainDoor) Build(context.Context, BuildAsk) (BuildAnswer, error) {
	d.asked.Add(1)
	return BuildAnswer{}, nil
}

func (d *plainDoor) ReadBuilt(context.Context, ReadBuiltAsk) ([]byte, error) {
	d.asked.Add(1)
	return nil, nil
}

func (d *plainDoor) Name(context.Context, NameAsk) (NameAnswer, error) {
	d.asked.Add(1)
	return NameAnswer{}, nil
}

func (d *plainDoor) Connect(context.Context, ConnectAsk) (Answer, error) {
	d.asked.Add(1)
	return Answer{}, nil
}

func (d *plainDoor) AwaitHost(context.Context, HostAsk) (Answer, error) {
	d.asked.Add(1)
	return Answer{}, nil
}

func (d *plainDoor) Tools(context.Context, string) ([]Tool, error) {
	d.asked.Add(1)
	return []Tool{}, nil
}

func (d *plainDoor) CallTool(context.Context, ToolAsk) (ToolAnswer, error) {
	d.asked.Add(1)
	return ToolAnswer{}, nil
}

func (d *plainDoor) Disconnected(context.Context, Disconnection) error {
	d.asked.Add(1)
	return nil
}

func (d *plainDoor) HostRefused(context.Context, HostRefusal) (Answer, error) {
	d.asked.Add(1)
	return Answer{}, nil
}

func (d *plainDoor) Standing(context.Context, string, []uint64) ([]uint64, error) {
	d.asked.Add(1)
	return nil, nil
}

func (d *plainDoor) Leaf(context.Context, LeafAsk) (Certificate, error) {
	d.asked.Add(1)
	return Certificate{}, nil
}

func (d *plainDoor) Request(context.Context, RequestAsk) (RequestAnswer, error) {
	d.asked.Add(1)
	return RequestAnswer{}, nil
}

func (d *plainDoor) AwaitPush(context.Context, PushAsk) (Answer, error) {
	d.asked.Add(1)
	return Answer{}, nil
}

func (d *plainDoor) Requested(context.Context, RequestsDone) error {
	d.asked.Add(1)
	return nil
}

func (d *plainDoor) Credentials(context.Context, CredentialsAsk) (CredentialsAnswer, error) {
	d.asked.Add(1)
	return CredentialsAnswer{}, nil
}

func (d *plainDoor) Secrets(context.Context, SecretsAsk) (SecretsAnswer, error) {
	d.asked.Add(1)
	return SecretsAnswer{}, nil
}

func (d *plainDoor) Declined(context.Context, DeclinedAsk) error {
	d.asked.Add(1)
	return nil
}

func (d *plainDoor) Leaked(context.Context, LeakAsk) (Answer, error) {
	d.asked.Add(1)
	return Answer{}, nil
}

func (d *plainDoor) Scans(context.Context, ScansAsk) (ScansAnswer, error) {
	d.asked.Add(1)
	return ScansAnswer{}, nil
}

func (d *plainDoor) FoundInRequest(context.Context, FoundAsk) (FoundAnswer, error) {
	d.asked.Add(1)
	return FoundAnswer{}, nil
}

func (d *plainDoor) Failed(context.Context, Failure) (Answer, error) {
	d.asked.Add(1)
	return Answer{}, nil
}

func (d *plainDoor) Edges(context.Context, string, pkgref.Ref, []Requirement) error {
	d.asked.Add(1)
	return nil
}

func (d *plainDoor) EdgesOfIndex(context.Context, string, pkgref.Ref, string, []IndexRequirement) error {
	d.asked.Add(1)
	return nil
}

func (d *plainDoor) Reach(context.Context, ReachAsk) (ReachAnswer, error) {
	d.asked.Add(1)
	return ReachAnswer{}, nil
}

func (d *plainDoor) Reached(context.Context, ReachAsk) (bool, error) {
	d.asked.Add(1)
	return true, nil
}

func (d *plainDoor) StopReaching(context.Context, ReachAsk) error {
	d.asked.Add(1)
	return nil
}

func (d *plainDoor) Propose(context.Context, ProposalAsk) ([]Proposed, error) {
	d.asked.Add(1)
	return []Proposed{}, nil
}

func (d *plainDoor) Show(context.Context, Showing) error {
	d.asked.Add(1)
	return nil
}

func (d *plainDoor) Sent(context.Context, string, uint64) error {
	d.asked.Add(1)
	return nil
}

func (d *plainDoor) Aborted(context.Context, string, uint64, int64) error {
	d.asked.Add(1)
	return nil
}

func (d *plainDoor) Refusals(context.Context, string, string, int) ([]Refusal, error) {
	d.asked.Add(1)
	return []Refusal{}, nil
}

func (d *plainDoor) Trust(context.Context, []string) (Certificate, error) {
	d.asked.Add(1)
	return Certificate{}, nil
}

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
func serve(tb testing.TB, d Door) (*Client, <-chan error) {
	tb.Helper()
	daemon, gateway := connect(tb)
	ctx, cancel := context.WithCancel(tb.Context())
	served := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { served <- Serve(ctx, daemon, d) })
	c := NewClient(gateway)
	tb.Cleanup(func() {
		c.Close()
		cancel()
		wg.Wait()
	})
	return c, served
}

func TestEveryQuestionReachesTheDaemon(t *testing.T) {
	d := &plainDoor{}
	c, _ := serve(t, d)
	for question := range reflect.TypeFor[Door]().Methods() {
		ask := reflect.ValueOf(c).MethodByName(question.Name)
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for i := 1; i < ask.Type().NumIn(); i++ {
			args = append(args, reflect.Zero(ask.Type().In(i)))
		}
		before := d.asked.Load()
		results := ask.Call(args)
		if err := results[len(results)-1]; !err.IsNil() {
			t.Errorf("%s: %v", question.Name, err)
		}
		if n := d.asked.Load() - before; n != 1 {
			t.Errorf("%s: the door was asked %d times", question.Name, n)
		}
	}
}

// stuckDoor is a door whose Serve waits for its context's end.
type stuckDoor struct {
	Door
	begun chan struct{}
	ended chan error
}

func (d stuckDoor) Serve(ctx context.Context, _ ServeAsk) (Answer, error) {
	close(d.begun)
	<-ctx.Done()
	d.ended <- ctx.Err()
	return Answer{}, ctx.Err()
}

func TestACancelledCallIsCancelledInTheDaemon(t *testing.T) {
	d := stuckDoor{Door: &plainDoor{}, begun: make(chan struct{}), ended: make(chan error, 1)}
	c, _ := serve(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Serve(ctx, ServeAsk{FileAsk: FileAsk{Sandbox: "sb1"}})
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
	d := stuckDoor{Door: &plainDoor{}, begun: make(chan struct{}), ended: make(chan error, 1)}
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
		_, err := c.Serve(t.Context(), ServeAsk{FileAsk: FileAsk{Sandbox: "sb1"}})
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
	if a, err := c.Serve(t.Context(), ServeAsk{FileAsk: FileAsk{Sandbox: "sb1"}}); !errors.Is(err, fault.ErrUnavailable) || a.Decision.Allowed() {
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
			d := &plainDoor{}
			c, _ := serve(t, d)
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
			if n := d.asked.Load(); n != 0 {
				t.Errorf("the door was asked %d times", n)
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
	go func() { served <- Serve(t.Context(), daemon, &plainDoor{}) }()
	_, err := gateway.Write([]byte("GET / HTTP/1.1\r\n\r\n and more"))
	must(t, err)
	<-served
	gateway.Close()
}

func TestTooManyStreamsAreRefused(t *testing.T) {
	c, _ := serve(t, &plainDoor{})
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

func FuzzIncoming(f *testing.F) {
	f.Add(frame(callName, []byte(`{"sandbox":"sb1","name":"x"}`)))
	f.Add(frame(callIndex, []byte(`{"ask":{"sandbox":"sb1","package":{"ecosystem":"python","name":"x"},"source_url":"","index_digest":"d","files":[]}}`)))
	f.Add(frame(callServe, []byte(`{}`)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	s := newServer(&plainDoor{})
	f.Fuzz(func(t *testing.T, data []byte) {
		a, b := net.Pipe()
		go func() {
			b.Write(data)
			b.Close()
		}()
		defer a.Close()
		m := incoming{conn: a, limit: func(kind byte) int { return method(kind).limit() }, timeout: messageTime}
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
