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

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
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

	each    func(ctx context.Context) // is called for each question, if it is not nil
	hung    func(sandbox string) bool // its calls end with their contexts, or when freed is closed; nil: none do
	freed   chan struct{}
	waiting atomic.Int64 // of these
}

func (d *plainDoor) note(ctx context.Context, sandbox string) {
	d.asked.Add(1)
	if d.each != nil {
		d.each(ctx)
	}
	if d.hung != nil && d.hung(sandbox) {
		d.waiting.Add(1)
		select {
		case <-ctx.Done():
		case <-d.freed:
		}
	}
}

func (d *plainDoor) Index(ctx context.Context, ask IndexAsk) (IndexAnswer, error) {
	d.note(ctx, ask.Sandbox)
	return IndexAnswer{Epoch: "e", Verdicts: []policy.Decision{}, OfFile: []int{}}, nil
}

func (d *plainDoor) Owner(ctx context.Context, ask OwnerAsk) (OwnerAnswer, error) {
	d.note(ctx, ask.Sandbox)
	return OwnerAnswer{}, nil
}

func (d *plainDoor) Judge(ctx context.Context, ask JudgeAsk) (Answer, error) {
	d.note(ctx, ask.Sandbox)
	return Answer{}, nil
}

func (d *plainDoor) Outline(ctx context.Context, ask OutlineAsk) (Answer, error) {
	d.note(ctx, ask.Sandbox)
	return Answer{}, nil
}

func (d *plainDoor) Preview(ctx context.Context, ask PreviewAsk) (Answer, error) {
	d.note(ctx, ask.Sandbox)
	return Answer{}, nil
}

func (d *plainDoor) Walk(ctx context.Context, ask WalkAsk) (Answer, error) {
	d.note(ctx, ask.Sandbox)
	return Answer{}, nil
}

func (d *plainDoor) Await(ctx context.Context, ask AwaitAsk) (Answer, error) {
	d.note(ctx, ask.Sandbox)
	return Answer{}, nil
}

func (d *plainDoor) Serve(ctx context.Context, ask ServeAsk) (Answer, error) {
	d.note(ctx, ask.Sandbox)
	return Answer{}, nil
}

func (d *plainDoor) Build(ctx context.Context, ask BuildAsk) (BuildAnswer, error) {
	d.note(ctx, ask.Sandbox)
	return BuildAnswer{}, nil
}

func (d *plainDoor) ReadBuilt(ctx context.Context, ask ReadBuiltAsk) ([]byte, error) {
	d.note(ctx, ask.Sandbox)
	return nil, nil
}

func (d *plainDoor) Name(ctx context.Context, ask NameAsk) (NameAnswer, error) {
	d.note(ctx, ask.Sandbox)
	return NameAnswer{}, nil
}

func (d *plainDoor) Resolving(ctx context.Context, ask ResolveAsk) (Answer, error) {
	d.note(ctx, ask.Sandbox)
	return Answer{}, nil
}

func (d *plainDoor) Connect(ctx context.Context, ask ConnectAsk) (Answer, error) {
	d.note(ctx, ask.Sandbox)
	return Answer{}, nil
}

func (d *plainDoor) AwaitHost(ctx context.Context, ask HostAsk) (Answer, error) {
	d.note(ctx, ask.Sandbox)
	return Answer{}, nil
}

func (d *plainDoor) Tools(ctx context.Context, sandbox string) ([]Tool, error) {
	d.note(ctx, sandbox)
	return []Tool{}, nil
}

func (d *plainDoor) CallTool(ctx context.Context, ask ToolAsk) (ToolAnswer, error) {
	d.note(ctx, ask.Sandbox)
	return ToolAnswer{}, nil
}

func (d *plainDoor) Disconnected(ctx context.Context, ask Disconnection) error {
	d.note(ctx, ask.Sandbox)
	return nil
}

func (d *plainDoor) HostRefused(ctx context.Context, ask HostRefusal) (Answer, error) {
	d.note(ctx, ask.Sandbox)
	return Answer{}, nil
}

func (d *plainDoor) Standing(ctx context.Context, sandbox string, _ []uint64) ([]uint64, error) {
	d.note(ctx, sandbox)
	return nil, nil
}

func (d *plainDoor) Leaf(ctx context.Context, ask LeafAsk) (Certificate, error) {
	d.note(ctx, ask.Sandbox)
	return Certificate{}, nil
}

func (d *plainDoor) Request(ctx context.Context, ask RequestAsk) (RequestAnswer, error) {
	d.note(ctx, ask.Sandbox)
	return RequestAnswer{}, nil
}

func (d *plainDoor) AwaitPush(ctx context.Context, ask PushAsk) (Answer, error) {
	d.note(ctx, ask.Sandbox)
	return Answer{}, nil
}

func (d *plainDoor) Requested(ctx context.Context, ask RequestsDone) error {
	d.note(ctx, ask.Sandbox)
	return nil
}

func (d *plainDoor) Credentials(ctx context.Context, ask CredentialsAsk) (CredentialsAnswer, error) {
	d.note(ctx, ask.Sandbox)
	return CredentialsAnswer{}, nil
}

func (d *plainDoor) Secrets(ctx context.Context, ask SecretsAsk) (SecretsAnswer, error) {
	d.note(ctx, ask.Sandbox)
	return SecretsAnswer{}, nil
}

func (d *plainDoor) Lent(ctx context.Context, ask LentAsk) (LentAnswer, error) {
	d.note(ctx, ask.Sandbox)
	return LentAnswer{}, nil
}

func (d *plainDoor) Declined(ctx context.Context, ask DeclinedAsk) error {
	d.note(ctx, ask.Sandbox)
	return nil
}

func (d *plainDoor) Leaked(ctx context.Context, ask LeakAsk) (Answer, error) {
	d.note(ctx, ask.Sandbox)
	return Answer{}, nil
}

func (d *plainDoor) Scans(ctx context.Context, ask ScansAsk) (ScansAnswer, error) {
	d.note(ctx, ask.Sandbox)
	return ScansAnswer{}, nil
}

func (d *plainDoor) FoundInRequest(ctx context.Context, ask FoundAsk) (FoundAnswer, error) {
	d.note(ctx, ask.Sandbox)
	return FoundAnswer{}, nil
}

func (d *plainDoor) Failed(ctx context.Context, ask Failure) (Answer, error) {
	d.note(ctx, ask.Sandbox)
	return Answer{}, nil
}

func (d *plainDoor) Edges(ctx context.Context, sandbox string, _ pkgref.Ref, _ []Requirement) error {
	d.note(ctx, sandbox)
	return nil
}

func (d *plainDoor) EdgesOfIndex(ctx context.Context, sandbox string, _ pkgref.Ref, _ string, _ []IndexRequirement) error {
	d.note(ctx, sandbox)
	return nil
}

func (d *plainDoor) Reach(ctx context.Context, ask ReachAsk) (ReachAnswer, error) {
	d.note(ctx, ask.Sandbox)
	return ReachAnswer{}, nil
}

func (d *plainDoor) Reached(ctx context.Context, ask ReachAsk) (bool, error) {
	d.note(ctx, ask.Sandbox)
	return true, nil
}

func (d *plainDoor) StopReaching(ctx context.Context, ask ReachAsk) error {
	d.note(ctx, ask.Sandbox)
	return nil
}

func (d *plainDoor) Propose(ctx context.Context, ask ProposalAsk) ([]Proposed, error) {
	d.note(ctx, ask.Sandbox)
	return []Proposed{}, nil
}

func (d *plainDoor) Asking(ctx context.Context, q Question) error {
	d.note(ctx, q.Sandbox)
	return nil
}

func (d *plainDoor) Show(ctx context.Context, ask Showing) error {
	d.note(ctx, ask.Sandbox)
	return nil
}

func (d *plainDoor) Sent(ctx context.Context, sandbox string, _ uint64) error {
	d.note(ctx, sandbox)
	return nil
}

func (d *plainDoor) Aborted(ctx context.Context, sandbox string, _ uint64, _ int64) error {
	d.note(ctx, sandbox)
	return nil
}

func (d *plainDoor) Refusals(ctx context.Context, sandbox string, _ string, _ int) ([]Refusal, error) {
	d.note(ctx, sandbox)
	return []Refusal{}, nil
}

func (d *plainDoor) Trust(ctx context.Context, _ []string) (Certificate, error) {
	d.note(ctx, "")
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

// askFrom asks a question of the Door that says nothing but which sandbox it is for.
func askFrom(ctx context.Context, c *Client, question, sandbox string) error {
	ask := reflect.ValueOf(c).MethodByName(question)
	args := []reflect.Value{reflect.ValueOf(ctx)}
	for i := 1; i < ask.Type().NumIn(); i++ {
		arg := reflect.New(ask.Type().In(i)).Elem()
		switch {
		case i == 1 && arg.Kind() == reflect.String:
			arg.SetString(sandbox)
		case i == 1 && arg.Kind() == reflect.Struct:
			arg.FieldByName("Sandbox").SetString(sandbox)
		}
		args = append(args, arg)
	}
	results := ask.Call(args)
	err, _ := reflect.TypeAssert[error](results[len(results)-1])
	return err
}

func TestEveryQuestionReachesTheDaemon(t *testing.T) {
	d := &plainDoor{}
	c, _ := serve(t, d)
	for question := range reflect.TypeFor[Door]().Methods() {
		before := d.asked.Load()
		if err := askFrom(t.Context(), c, question.Name, "sb1"); err != nil {
			t.Errorf("%s: %v", question.Name, err)
		}
		if n := d.asked.Load() - before; n != 1 {
			t.Errorf("%s: the door was asked %d times", question.Name, n)
		}
	}
}

// stuckDoor is a door whose Serve and Await wait for their context's end.
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

func (d stuckDoor) Await(ctx context.Context, ask AwaitAsk) (Answer, error) {
	return d.Serve(ctx, ServeAsk{FileAsk: ask.FileAsk})
}

func TestACancelledCallIsCancelledInTheDaemon(t *testing.T) {
	d := stuckDoor{Door: &plainDoor{}, begun: make(chan struct{}), ended: make(chan error, 1)}
	c, _ := serve(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Await(ctx, AwaitAsk{FileAsk: FileAsk{Sandbox: "sb1"}})
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
			kind, n, err := m.readHead()
			if err == nil {
				var buf bytes.Buffer
				must(t, m.readBody(&buf, n))
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
	for range maxStreams {
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
		m := incoming{conn: a, limit: func(kind byte) int { return method(kind).messageLimit() }, timeout: messageTime}
		kind, n, err := m.readHead()
		if err != nil {
			return
		}
		var buf bytes.Buffer
		if m.readBody(&buf, n) != nil {
			return
		}
		read, err := s.decodeCall(method(kind), buf.Bytes())
		if err != nil {
			return
		}
		answer, err := read(t.Context())
		var out bytes.Buffer
		if err == nil && encodeMessage(&out, 0, answer) != nil {
			t.Fatalf("an answer can't be sent: %+v", answer)
		}
	})
}
