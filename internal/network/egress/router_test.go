package egress_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/outbound"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeDoor records what it is asked; only what egress uses does anything.
type fakeDoor struct {
	door.Door
	mu       sync.Mutex
	names    []string
	failed   []string
	refusals []door.Refusal

	allowed  map[string][]int // hosts, with their ports
	tcp      int              // the port on which they may speak what they like
	denied   bool             // connections to them
	denials  int              // of these, how often
	begun    []door.ConnectAsk
	ended    []door.Disconnection
	dials    int64    // of those
	rejected []string // "rule name:port reason"
	gone     bool     // no connection may go on
	lost     bool     // nor is it known which
	looks    int      // questions which may go on
	changed  chan struct{}

	looked      []string // names that may be looked up
	unresolving string   // why none may be
}

func (d *fakeDoor) Name(_ context.Context, ask door.NameAsk) (door.NameAnswer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ports := d.allowed[ask.Name]; slices.Contains(ports, ask.Port) || ports != nil && ask.Port == 0 {
		return door.NameAnswer{Answer: door.Answer{Decision: policy.Decision{Effect: policy.Allow}}, Ports: ports, TCP: ask.Port != 0 && ask.Port == d.tcp}, nil
	}
	if !ask.Look {
		d.names = append(d.names, ask.Sandbox+" "+ask.Name)
	}
	return door.NameAnswer{Answer: door.Answer{Decision: policy.Decision{Effect: policy.Deny, Reason: "no such name in the policy"}, RequestID: "n-1"}}, nil
}

func (d *fakeDoor) Failed(_ context.Context, f door.Failure) (door.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = append(d.failed, f.Reason)
	d.change()
	return door.Answer{}, nil
}

func (d *fakeDoor) Refusals(_ context.Context, _, request string, _ int) ([]door.Refusal, error) {
	if request == "" {
		return d.refusals, nil
	}
	return slices.DeleteFunc(slices.Clone(d.refusals), func(r door.Refusal) bool { return r.RequestID != request }), nil
}

func (d *fakeDoor) asked() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.names)
}

// registry echoes what it is sent, after its own word.
type registry struct{}

func (registry) IsRegistry(name string) bool { return name == "index.example" }

func (registry) Propose(_ context.Context, sandbox string, r channel.Request) ([]door.Proposed, error) {
	if r.Because == "fail" {
		return nil, fault.New(fault.ErrConflict, "another request of this sandbox is being looked up")
	}
	var out []door.Proposed
	for i, item := range r.Items {
		p := door.Proposed{Package: pkgref.Ref{Ecosystem: pkgref.Ecosystem(item.Ecosystem), Name: item.Name, Version: sandbox}, Reason: "because\x1b[31m"}
		p.Effect = []policy.Effect{policy.Allow, policy.Hold, policy.Deny}[i%3]
		if p.Effect == policy.Hold {
			p.Approval = "ap-test"
		}
		out = append(out, p)
	}
	return out, nil
}

func (registry) ServeRegistry(conn net.Conn, sandbox string) {
	defer conn.Close()
	if _, err := io.WriteString(conn, "registry for "+sandbox+": "); err != nil {
		return
	}
	_, _ = io.Copy(conn, conn) // until the guest closes its side
}

// uplink serves a router on a Unix socket, as in production.
func uplink(t *testing.T, d *fakeDoor, limits egress.Limits) (dial func() net.Conn) {
	t.Helper()
	return uplinkTo(t, d, limits, nil)
}

// uplinkTo has its own dialer, and asks a door that may be more than d.
func uplinkTo(t *testing.T, d *fakeDoor, limits egress.Limits, dialer *outbound.Dialer, asks ...door.Door) (dial func() net.Conn) {
	t.Helper()
	return serveUplink(t, egress.Config{Door: append(asks, d)[0], Limits: limits, Dialer: dialer})
}

// handClock is a clock that only the test moves, so that a rate lets in what it lets in at once, and no more.
type handClock struct{ ahead atomic.Int64 }

func (c *handClock) now() time.Time { return time.Unix(0, c.ahead.Load()) }

func (c *handClock) advance(by time.Duration) { c.ahead.Add(int64(by)) }

// serveUplink is uplink for a router that has more than limits.
func serveUplink(t *testing.T, cfg egress.Config) (dial func() net.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "uplink.sock")
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	cfg.Registry = registry{}
	if sees, ok := cfg.Door.(requests.Exchanges); ok {
		cfg.Exchanges = sees
	}
	r := egress.NewRouter(cfg)
	go func() { done <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return func() net.Conn {
		var nd net.Dialer
		conn, err := nd.DialContext(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() }) // it may be closed already
		return conn
	}
}

func open(t *testing.T, conn net.Conn, sandbox string, o channel.Open) channel.Reply {
	t.Helper()
	w := channel.NewWriter(conn)
	if err := w.WriteJSON(channel.FrameOpen, keeper.StreamIdentity{Sandbox: sandbox}); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteJSON(channel.FrameOpen, o); err != nil {
		t.Fatal(err)
	}
	var r channel.Reply
	if err := channel.NewReader(conn).ReadJSON(channel.FrameReply, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRegistryStream(t *testing.T) {
	d := &fakeDoor{}
	dial := uplink(t, d, egress.Limits{})
	r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenDNS, Name: "index.example"})
	if !r.OK || !r.DNS.Exists || len(r.DNS.Ports) != 1 || r.DNS.Ports[0] != 443 {
		t.Errorf("DNS: %+v", r)
	}
	conn := dial()
	if r := open(t, conn, "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "index.example", Port: 443}); !r.OK {
		t.Fatalf("TCP: %+v", r)
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil || string(got) != "registry for sb-1: hello" {
		t.Errorf("got %q, %v", got, err)
	}
	if d.asked() != 0 {
		t.Errorf("the door was asked about a registry: %v", d.names)
	}
}

// TestHangUp: a guest ends its own connections, and no other's.
func TestHangUp(t *testing.T) {
	dial := uplink(t, &fakeDoor{}, egress.Limits{})
	conn, name := dial(), ""
	if r := open(t, conn, "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "index.example", Port: 443}); r.OK {
		name = r.Text
	}
	if name == "" {
		t.Fatal("the connection has no name")
	}
	echo := func(word string) (string, error) {
		if _, err := io.WriteString(conn, word); err != nil {
			return "", err
		}
		got := make([]byte, len(word))
		_, err := io.ReadFull(conn, got)
		return string(got), err
	}
	greeting := make([]byte, len("registry for sb-1: "))
	if _, err := io.ReadFull(conn, greeting); err != nil {
		t.Fatal(err)
	}
	for _, other := range []struct{ sandbox, stream string }{{"sb-2", name}, {"sb-1", "12345"}, {"sb-1", ""}} {
		open(t, dial(), other.sandbox, channel.Open{Kind: channel.OpenHangUp, Stream: other.stream})
		if got, err := echo("still here"); err != nil || got != "still here" {
			t.Fatalf("%v ended the connection: %q, %v", other, got, err)
		}
	}
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenHangUp, Stream: name}); !r.OK {
		t.Fatalf("%+v", r)
	}
	if rest, err := io.ReadAll(conn); len(rest) > 0 {
		t.Errorf("the connection goes on: %q, %v", rest, err)
	}
}

// TestNames is C-NE-05 and C-NE-10 at the host: nothing but the exact name.
func TestNames(t *testing.T) {
	d := &fakeDoor{}
	dial := uplink(t, d, egress.Limits{Names: 1000})
	canonical := []string{"evil.example", "index.example.evil.example", "evilindex.example", "xn--ndex-2pa.example", "localhost", "127.0.0.1", "169.254.169.254", "2852039166", "metadata.google.internal", "a_b.example"}
	malformed := []string{
		"index.example.", "INDEX.example", "index.example@evil.example", "evil.example\x00.index.example", "index.example\x00", "índex.example", "index..example", ".index.example",
		"", " index.example", "index.example:443", "[::1]", "0x7f.0.0.1 ", "index.example/..", strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 127) + "example", "-a.example", "index。example",
	}
	for _, name := range append(append([]string{}, canonical...), malformed...) {
		if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenDNS, Name: name}); r.DNS == nil || r.DNS.Exists {
			t.Errorf("DNS %q: %+v", name, r)
		}
		if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenTCP, Name: name, Port: 443}); r.OK || r.Error == "" {
			t.Errorf("TCP %q: %+v", name, r)
		}
	}
	for _, port := range []int{0, 80, 22, -1, 65536, 8443} {
		if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "index.example", Port: port}); r.OK {
			t.Errorf("port %d: %+v", port, r)
		}
	}
	if want := 2*len(canonical) + 4; d.asked() != want {
		t.Errorf("the door was asked %d times, want %d: %v", d.asked(), want, d.names)
	}
	if len(d.failed) == 0 {
		t.Error("malformed names left no record")
	}
	for _, reason := range d.failed {
		if strings.Contains(reason, "evil") {
			t.Errorf("a record carries the guest's text: %q", reason)
		}
	}
}

func TestDistinctNamesAreCapped(t *testing.T) {
	d := &fakeDoor{}
	dial := uplink(t, d, egress.Limits{Names: 5})
	for i := range 20 {
		open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenDNS, Name: strings.Repeat("a", i+1) + ".example"})
	}
	if d.asked() != 5 {
		t.Errorf("the door was asked about %d names, want 5", d.asked())
	}
	open(t, dial(), "sb-2", channel.Open{Kind: channel.OpenDNS, Name: "b.example"})
	if d.asked() != 6 {
		t.Error("one sandbox's names count against another's")
	}
	d.allowed = map[string][]int{"c.example": {443}}
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenDNS, Name: "c.example"}); !r.DNS.Exists {
		t.Error("past the cap an allowed name does not exist")
	}
}

func TestStreamsAreCapped(t *testing.T) {
	d := &fakeDoor{}
	dial := uplink(t, d, egress.Limits{Streams: 2})
	var held []net.Conn
	for range 2 {
		c := dial()
		if r := open(t, c, "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "index.example", Port: 443}); !r.OK {
			t.Fatalf("%+v", r)
		}
		held = append(held, c)
	}
	if r := openRefused(t, dial(), "sb-1"); r.OK || !strings.Contains(r.Error, "too many connections") {
		t.Errorf("a third stream: %+v", r)
	}
	if r := open(t, dial(), "sb-2", channel.Open{Kind: channel.OpenDNS, Name: "index.example"}); !r.OK {
		t.Errorf("another sandbox: %+v", r)
	}
	if err := held[0].Close(); err != nil {
		t.Fatal(err)
	}
	for {
		if r := openRefused(t, dial(), "sb-1"); r.OK {
			return // the slot is free again
		}
		if t.Context().Err() != nil {
			t.Fatal("the slot never became free")
		}
	}
}

// openRefused opens a stream that may be answered before its second frame is read.
func openRefused(t *testing.T, conn net.Conn, sandbox string) channel.Reply {
	t.Helper()
	w := channel.NewWriter(conn)
	if err := w.WriteJSON(channel.FrameOpen, keeper.StreamIdentity{Sandbox: sandbox}); err != nil {
		t.Fatal(err)
	}
	_ = w.WriteJSON(channel.FrameOpen, channel.Open{Kind: channel.OpenDNS, Name: "index.example"}) // it may be closed already
	var r channel.Reply
	if err := channel.NewReader(conn).ReadJSON(channel.FrameReply, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestHostileFrames: what is no open ends the stream, with nothing asked.
func TestHostileFrames(t *testing.T) {
	d := &fakeDoor{}
	dial := uplink(t, d, egress.Limits{OpenTime: 200 * time.Millisecond})
	id := `{"sandbox":"sb-1"}`
	frame := func(kind byte, n uint32, payload string) string {
		return string([]byte{kind, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + payload
	}
	good := frame(1, uint32(len(id)), id)
	for name, sent := range map[string]string{
		"nothing":           "",
		"garbage":           "GET / HTTP/1.1\r\n\r\n",
		"no identity":       frame(1, 2, "{}"),
		"identity and hush": good,
		"huge frame":        good + frame(1, 1<<31, ""),
		"cut frame":         good + frame(1, 100, "{"),
		"wrong type":        good + frame(3, 2, "{}"),
		"not json":          good + frame(1, 3, "abc"),
		"unknown field":     good + frame(1, 27, `{"kind":"dns","approve":1} `),
		"two values":        good + frame(1, 4, "{}{}"),
		"unknown kind":      good + frame(1, 18, `{"kind":"approve"}`),
		"deep":              good + frame(1, 100_000, strings.Repeat("[", 100_000)),
	} {
		conn := dial()
		if _, err := io.WriteString(conn, sent); err != nil && !strings.Contains(err.Error(), "broken pipe") {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := io.ReadAll(conn) // the router answers or not, and closes
		if err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(string(got), `"ok":true`) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if d.asked() != 0 {
		t.Errorf("the door was asked: %v", d.names)
	}
}

func TestWhy(t *testing.T) {
	d := &fakeDoor{}
	dial := uplink(t, d, egress.Limits{})
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenWhy}); !r.OK || r.Text != "Nothing was refused in this run.\n" {
		t.Errorf("%+v", r)
	}
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenWhy, JSON: true}); r.Text != "[]\n" {
		t.Errorf("%+v", r)
	}
	d.refusals = []door.Refusal{
		{
			Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "foo", Version: "2.0"}, File: "foo-2.0.tar.gz",
			Outcome: "blocked", Rule: "cap", Reason: "over the \x1b[31mcap", Suggest: "python:\n  - { name: foo }\n", RequestID: "r-1", Count: 3,
		},
		{Time: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), What: "name", Name: "evil.example", Outcome: "blocked", Reason: "no", RequestID: "r-2"},
	}
	want := `03:04:05Z  blocked: python foo 2.0 (foo-2.0.tar.gz), 3 times
  why:     over the \x1b[31mcap
  rule:    cap
  request: r-1
  a person can allow it by adding this to the policy, on the host:
    python:
      - { name: foo }
03:04:06Z  blocked: evil.example
  why:     no
  request: r-2
`
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenWhy}); r.Text != want {
		t.Errorf("got\n%s\nwant\n%s", r.Text, want)
	}
	var got []door.Refusal
	r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenWhy, JSON: true})
	if err := json.Unmarshal([]byte(r.Text), &got); err != nil || len(got) != 2 {
		t.Errorf("%s: %v", r.Text, err)
	}
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenWhy, ID: "r-2"}); r.Text != want[strings.Index(want, "03:04:06Z"):] {
		t.Errorf("by id: %q", r.Text)
	}
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenWhy, ID: "r-\x1b3"}); r.OK || r.Code != channel.CodeNotFound || !strings.Contains(r.Error, "under the id r-\\x1b3;") {
		t.Errorf("an id that there is not: %+v", r)
	}
	for range 10_000 {
		d.refusals = append(d.refusals, d.refusals[1])
	}
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenWhy}); !r.OK || !strings.Contains(r.Text, "evil.example") {
		t.Errorf("many refusals: %d bytes, %v", len(r.Text), r.Error)
	}
}

// crowded is a listener that is out of descriptors once.
type crowded struct {
	net.Listener
	once sync.Once
}

func (c *crowded) Accept() (conn net.Conn, err error) {
	c.once.Do(func() {
		err = &net.OpError{Op: "accept", Net: "unix", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	})
	if err != nil {
		return nil, err
	}
	return c.Listener.Accept()
}

// TestOutOfDescriptors: a moment without descriptors, of which sandboxes have some hundreds each, does
// not end the gateway, and with it everybody's connections.
func TestOutOfDescriptors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "u")
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- egress.NewRouter(egress.Config{Registry: registry{}, Door: &fakeDoor{}}).Serve(ctx, &crowded{Listener: l})
	}()
	var nd net.Dialer
	conn, err := nd.DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if r := open(t, conn, "sb-1", channel.Open{Kind: channel.OpenWhy}); !r.OK {
		t.Errorf("after that: %+v", r)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("the router ended with %v", err)
	}
}
