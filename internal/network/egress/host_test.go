package egress_test

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/outbound"
)

// change wakes who waits for the door to have been told something; mu is held.
func (d *fakeDoor) change() {
	if d.changed != nil {
		close(d.changed)
	}
	d.changed = make(chan struct{})
}

func (d *fakeDoor) Resolving(_ context.Context, ask door.ResolveAsk) (door.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unresolving != "" {
		return door.Answer{Decision: policy.Decision{Effect: policy.Deny, Rule: "quota.names", Reason: d.unresolving}, RequestID: "n-4"}, nil
	}
	d.looked = append(d.looked, ask.Name)
	return door.Answer{Decision: policy.Decision{Effect: policy.Allow}}, nil
}

func (d *fakeDoor) Connect(_ context.Context, ask door.ConnectAsk) (door.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.denied {
		d.denials++
		return door.Answer{Decision: policy.Decision{Effect: policy.Deny, Reason: "closed by its client"}, RequestID: "n-2"}, nil
	}
	d.begun = append(d.begun, ask)
	d.change()
	return door.Answer{Decision: policy.Decision{Effect: policy.Allow}, Seq: uint64(len(d.begun))}, nil
}

func (d *fakeDoor) Disconnected(_ context.Context, how door.Disconnection) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	how.Milliseconds = 0
	d.dials += how.Dials
	how.Dials = 0
	d.ended = append(d.ended, how)
	d.change()
	return nil
}

func (d *fakeDoor) HostRefused(_ context.Context, h door.HostRefusal) (door.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	said := fmt.Sprintf("%s %s:%d %s", h.Rule, h.Name, h.Port, h.Reason)
	if h.Request != "" {
		said += " [" + h.Request + "]"
	}
	d.rejected = append(d.rejected, said)
	d.change()
	return door.Answer{RequestID: "n-3"}, nil
}

func (d *fakeDoor) Standing(_ context.Context, _ string, connections []uint64) ([]uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	d.change()
	switch {
	case d.lost:
		return nil, fault.New(fault.ErrForbidden, "an unknown sandbox")
	case d.gone:
		return connections, nil
	}
	return nil, nil
}

// until waits for the door to have been told what is looked for.
func (d *fakeDoor) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		d.mu.Lock()
		if is() {
			d.mu.Unlock()
			return
		}
		if d.changed == nil {
			d.changed = make(chan struct{})
		}
		changed := d.changed
		d.mu.Unlock()
		select {
		case <-changed:
		case <-late:
			t.Fatalf("never: %s; refused %q, begun %v, ended %v", what, d.rejected, d.begun, d.ended)
		}
	}
}

// place is a host of the test's own, by a name that is pinned to it.
type place struct {
	net.Listener
	mu       sync.Mutex
	accepted int
}

func (p *place) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted++
	return conn, err
}

func (p *place) reached() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

func newPlace(t *testing.T) *place {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // a server may have closed it
	return &place{Listener: l}
}

// pinned is a dialer that finds api.example there.
func pinned(t *testing.T, at net.Addr) *outbound.Dialer {
	t.Helper()
	h, err := outbound.NewHost("api.example", at.String(), 0, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return outbound.NewDialer([]outbound.Host{h}, nowhere{})
}

// nowhere is a resolver that knows one name, which is at a private address.
type nowhere struct{}

func (nowhere) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if host == "inside.example." {
		return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
	}
	return nil, errors.New("no such host")
}

func hosts() map[string][]int {
	return map[string][]int{"api.example": {80, 443}, "inside.example": {443}, "nowhere.example": {443}, "index.example": {80}}
}

// to is a guest's connection to a host.
func to(t *testing.T, conn net.Conn, name string, port int) net.Conn {
	t.Helper()
	if r := open(t, conn, "sb-1", channel.Open{Kind: channel.OpenTCP, Name: name, Port: port}); !r.OK {
		t.Fatalf("%s:%d: %+v", name, port, r)
	}
	return conn
}

// serveTLS answers at a place, over TLS, with what its handler says.
func serveTLS(t *testing.T, at *place, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close() // another takes its place
	s.Listener = at
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func config(s *httptest.Server, name string) *tls.Config {
	c := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	c.ServerName, c.InsecureSkipVerify = name, true
	return c
}

// hiding is a list of one key (ECHConfigList) with which clients hide another ClientHello,
// behind one that names a host.
func hiding(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	contents := slices.Concat([]byte{7, 0, 0x20, 0, 32}, key.PublicKey().Bytes(), []byte{0, 4, 0, 1, 0, 1, 0, byte(len(name))}, []byte(name), []byte{0, 0})
	one := slices.Concat([]byte{0xfe, 0x0d, 0, byte(len(contents))}, contents)
	return append([]byte{0, byte(len(one))}, one...)
}

// TestAHiddenHelloIsRefused, although the one around it names the connection's host: passed
// through, and where TLS is ended.
func TestAHiddenHelloIsRefused(t *testing.T) {
	const want = "network.tls api.example:443 the ClientHello hides another one (ECH), or pretends to, so it does not tell which host is meant"
	at := newPlace(t)
	s := serveTLS(t, at, http.NotFoundHandler())
	d := &fakeDoor{allowed: hosts()}
	e := endAt(t, http.NotFoundHandler(), "api.example")
	for _, c := range []struct {
		dial   func() net.Conn
		door   *fakeDoor
		config *tls.Config
		at     *place
	}{{uplinkTo(t, d, egress.Limits{}, pinned(t, at.Addr())), d, config(s, "api.example"), at}, {e.dial, e.door.fakeDoor, e.tls.Clone(), e.at}} {
		plain := tls.Client(to(t, c.dial(), "api.example", 443), c.config)
		if err := plain.HandshakeContext(t.Context()); err != nil { // the control
			t.Fatal(err)
		}
		if err := plain.Close(); err != nil {
			t.Error(err)
		}
		before := c.at.reached()
		c.config.ServerName, c.config.EncryptedClientHelloConfigList, c.config.MinVersion = "evil.example", hiding(t, "api.example"), tls.VersionTLS13
		if err := tls.Client(to(t, c.dial(), "api.example", 443), c.config).HandshakeContext(t.Context()); err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Error(err)
		}
		c.door.until(t, want, func() bool { return slices.Contains(c.door.rejected, want) })
		if n := c.at.reached(); n != before {
			t.Errorf("%d connections more", n-before)
		}
	}
}

func TestHostOverTLS(t *testing.T) {
	at := newPlace(t)
	s := serveTLS(t, at, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	d := &fakeDoor{allowed: hosts()}
	dial := uplinkTo(t, d, egress.Limits{}, pinned(t, at.Addr()))
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenDNS, Name: "api.example"}); !r.OK || !r.DNS.Exists || !slices.Equal(r.DNS.Ports, []int{80, 443}) {
		t.Errorf("DNS: %+v", r)
	}
	for name, want := range map[string]string{
		"evil.example": "network.tls api.example:443 the ClientHello names evil.example, and the connection is to api.example",
		"":             "network.tls api.example:443 the ClientHello names no host",
	} {
		err := tls.Client(to(t, dial(), "api.example", 443), config(s, name)).HandshakeContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("%q: %v", name, err)
		}
		d.until(t, want, func() bool { return slices.Contains(d.rejected, want) })
	}
	if n := at.reached(); n != 0 || len(d.begun) > 0 {
		t.Errorf("refused clients made %d connections to the host", n)
	}

	conn := tls.Client(to(t, dial(), "api.example", 443), config(s, "API.example"))
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(got), "hello") {
		t.Errorf("%q, %v", got, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	d.until(t, "the end", func() bool { return len(d.ended) == 1 })
	want := door.ConnectAsk{Sandbox: "sb-1", Name: "api.example", Port: 443, Protocol: "tls", Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Pinned: true}
	if got := fmt.Sprint(d.begun); got != fmt.Sprint([]door.ConnectAsk{want}) {
		t.Error(got)
	}
	if e := d.ended[0]; e.Seq != 1 || e.Address != at.Addr().String() || e.BytesOut < 500 || e.BytesIn < 500 || e.Problem != "" || e.Unreached {
		t.Errorf("%+v", e)
	}
}

// TestHostsThatAreNotReached: each for its reason, and none is dialled.
func TestHostsThatAreNotReached(t *testing.T) {
	at := newPlace(t)
	d := &fakeDoor{allowed: hosts()}
	dial := uplinkTo(t, d, egress.Limits{HelloTime: time.Hour}, pinned(t, at.Addr()))
	brief := uplinkTo(t, d, egress.Limits{HelloTime: time.Millisecond}, pinned(t, at.Addr()))
	first := firstHello(t, "inside.example")
	for _, c := range []struct {
		name, sent, want string
		dial             func() net.Conn
	}{
		{"api.example", "SSH-2.0-x\r\n\x00", "network.http", dial}, // its first letter could begin a request
		{"api.example", "\x00\x01", "network.protocol", dial},
		{"api.example", "", "network.protocol", brief}, // its time is over
		{"api.example", "\x16\x03\x01\x00\x00", "network.tls", dial},
		{"inside.example", first, "network.address", dial},
		{"nowhere.example", strings.ReplaceAll(firstHello(t, "nowhere.example"), "inside.example", "nowhere.example"), "network.unresolved", dial},
	} {
		before := len(d.rejected)
		conn := to(t, c.dial(), c.name, 443)
		if _, err := io.WriteString(conn, c.sent); err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(conn) // until it is ended
		d.until(t, c.want, func() bool {
			return len(d.rejected) > before && strings.HasPrefix(d.rejected[len(d.rejected)-1], c.want+" "+c.name+":443 ")
		})
	}
	begunTLS(t, d, pinned(t, at.Addr()))
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "index.example", Port: 80}); r.OK || !strings.Contains(r.Error, "is a registry") {
		t.Errorf("a registry past the gateway: %+v", r)
	}
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "api.example", Port: 22}); r.OK {
		t.Errorf("a port that is not the policy's: %+v", r)
	}
	d.denied = true
	conn := to(t, dial(), "api.example", 443)
	if _, err := io.WriteString(conn, firstHello(t, "api.example")); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(conn); !bytes.Equal(got, []byte{0x15, 3, 1, 0, 2, 2, 49}) {
		t.Errorf("%q", got)
	}
	if at.reached() != 0 || len(d.begun) != 0 {
		t.Errorf("%d connections, %v", at.reached(), d.begun)
	}
}

// begunTLS has a client begin a handshake and say no more. That it began must be read in time,
// on however busy a machine.
func begunTLS(t *testing.T, d *fakeDoor, dialer *outbound.Dialer) {
	t.Helper()
	for limit := 10 * time.Millisecond; limit < time.Minute; limit *= 4 {
		before := len(d.rejected)
		conn := to(t, uplinkTo(t, d, egress.Limits{HelloTime: limit}, dialer)(), "api.example", 443)
		_, _ = io.WriteString(conn, "\x16\x03\x01\x00\x02\x01\x00") // it may have been ended
		_, _ = io.ReadAll(conn)
		d.until(t, "its end", func() bool { return len(d.rejected) > before })
		if said := d.rejected[len(d.rejected)-1]; strings.HasPrefix(said, "network.tls api.example:443 ") {
			return
		} else if !strings.HasPrefix(said, "network.protocol api.example:443 ") {
			t.Errorf("it ended with %q", said)
		}
	}
	t.Error("a handshake that was begun is never told as one")
}

// firstHello is a real client's first message.
func firstHello(t *testing.T, name string) string {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	client := tls.Client(a, &tls.Config{ServerName: name, MinVersion: tls.VersionTLS13})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = client.HandshakeContext(t.Context()) // it is cut off
	}()
	buf := make([]byte, 16<<10)
	n, err := b.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	_ = b.Close()
	<-done
	return string(buf[:n])
}

// retry is a HelloRetryRequest, in a record.
func retry() []byte {
	random := []byte("\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c")
	m := append([]byte{2, 0, 0, 38, 3, 3}, random...)
	m = append(m, 0, 0x13, 1, 0)
	return append([]byte{22, 3, 3, 0, byte(len(m))}, m...)
}

// TestAnotherNameAfterARetry: also one that was sent before the server asked for it.
func TestAnotherNameAfterARetry(t *testing.T) {
	first := firstHello(t, "api.example")
	for name, c := range map[string]struct {
		second string
		early  bool // sent at once
		passes bool
	}{
		"the same":        {first, false, true},
		"the same, early": {first, true, true},
		"another":         {firstHello(t, "evil.example"), false, false},
		"another, early":  {firstHello(t, "evil.example"), true, false},
		"none":            {"\x17\x03\x03\x00\x01x\x15\x03\x03\x00\x02\x02\x28", false, false},
	} {
		at := newPlace(t)
		d := &fakeDoor{allowed: hosts()}
		conn := to(t, uplinkTo(t, d, egress.Limits{}, pinned(t, at.Addr()))(), "api.example", 443)
		sent := first
		if c.early {
			sent += c.second
		}
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Fatal(err)
		}
		server, err := at.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(first))
		if _, err := io.ReadFull(server, got); err != nil || string(got) != first {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := server.Write(retry()); err != nil {
			t.Fatal(err)
		}
		asked := make([]byte, len(retry()))
		if _, err := io.ReadFull(conn, asked); err != nil || !bytes.Equal(asked, retry()) {
			t.Fatalf("%s: %q, %v", name, asked, err)
		}
		if !c.early {
			if _, err := io.WriteString(conn, c.second); err != nil {
				t.Fatal(err)
			}
		}
		if c.passes {
			if _, err := io.WriteString(conn, "the rest"); err != nil {
				t.Fatal(err)
			}
			more := make([]byte, len(c.second)+len("the rest"))
			if _, err := io.ReadFull(server, more); err != nil || string(more) != c.second+"the rest" {
				t.Errorf("%s: %v", name, err)
			}
		} else {
			d.until(t, name, func() bool { return len(d.rejected) == 1 && strings.HasPrefix(d.rejected[0], "network.tls ") })
			if more, _ := io.ReadAll(server); len(more) > 0 {
				t.Errorf("%s: the server got %q", name, more)
			}
		}
		_ = errors.Join(server.Close(), conn.Close()) // one of them may be closed already
	}
}

// TestConnectionsEnd: when the door says so, when it can't say, and when the guest's end
// has gone while the host is silent; whatever is spoken.
func TestConnectionsEnd(t *testing.T) {
	for name, w := range map[string]struct {
		end     func(*fakeDoor, net.Conn)
		problem string
	}{
		"may not go on":   {func(d *fakeDoor, _ net.Conn) { d.gone = true }, "it may not go on any more: its policy was narrowed, or its sandbox was paused"},
		"nobody can say":  {func(d *fakeDoor, _ net.Conn) { d.lost = true }, "its sandbox has ended, or nobody can say whether it may go on"},
		"guest has gone":  {func(_ *fakeDoor, guest net.Conn) { _ = guest.Close() }, "the sandbox's end of the connection has gone"},
		"the bytes ended": {func(_ *fakeDoor, guest net.Conn) { _, _ = io.WriteString(guest, strings.Repeat("x", 100_000)) }, "the run has carried as many bytes as one may"},
	} {
		for protocol, port := range map[string]int{"tls": 443, "tcp": 5432} {
			t.Run(name+", "+protocol, func(t *testing.T) {
				d, conn, server := joined(t, port)
				d.mu.Lock()
				w.end(d, conn)
				d.mu.Unlock()
				_, _ = io.Copy(io.Discard, server) // it ends, by a reset perhaps
				d.until(t, "the end", func() bool { return len(d.ended) == 1 })
				if e := d.ended[0]; e.Problem != w.problem || e.BytesOut == 0 || d.begun[0].Protocol != protocol {
					t.Errorf("%+v of %+v", e, d.begun)
				}
			})
		}
	}
}

// TestConnectionsGoOn: over many looks while both ends are there, and while one of them
// says no more.
func TestConnectionsGoOn(t *testing.T) {
	for protocol, port := range map[string]int{"tls": 443, "tcp": 5432} {
		t.Run(protocol, func(t *testing.T) {
			d, conn, server := joined(t, port)
			for range 2 {
				d.mu.Lock()
				seen := d.looks
				d.mu.Unlock()
				d.until(t, "two looks more", func() bool { return d.looks >= seen+2 })
				if err := conn.(*net.UnixConn).CloseWrite(); err != nil { // the second time it is closed already
					t.Fatal(err)
				}
			}
			if _, err := io.Copy(io.Discard, server); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(server, "late"); err != nil {
				t.Fatal(err)
			}
			if err := server.Close(); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(conn); err != nil || string(got) != "late" {
				t.Errorf("%q, %v", got, err)
			}
			d.until(t, "the end", func() bool { return len(d.ended) == 1 && d.ended[0].Problem == "" })
		})
	}
}

// joined is a connection of a guest to a host, on which both have said something.
func joined(t *testing.T, port int) (d *fakeDoor, guest, host net.Conn) {
	t.Helper()
	at := newPlace(t)
	d = &fakeDoor{allowed: map[string][]int{"api.example": {443, 5432}}, tcp: 5432}
	limits := egress.Limits{Look: 5 * time.Millisecond, Bytes: 50_000}
	guest = to(t, uplinkTo(t, d, limits, pinned(t, at.Addr()))(), "api.example", port)
	if _, err := io.WriteString(guest, firstHello(t, "api.example")); err != nil {
		t.Fatal(err)
	}
	host, err := at.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() }) // it may be closed already
	if _, err := host.Write([]byte("\x16\x03\x03\x00\x2c\x02\x00\x00\x28" + strings.Repeat("\x03", 40))); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(guest, make([]byte, 49)); err != nil {
		t.Fatal(err)
	}
	return d, guest, host
}

// TestConnectionsAtATimeAreCapped: one run's, and none of another's.
func TestConnectionsAtATimeAreCapped(t *testing.T) {
	at := newPlace(t)
	d := &fakeDoor{allowed: hosts()}
	dial := uplinkTo(t, d, egress.Limits{Connections: 2}, pinned(t, at.Addr()))
	for range 2 {
		to(t, dial(), "api.example", 443)
	}
	third := channel.Open{Kind: channel.OpenTCP, Name: "api.example", Port: 443}
	if r := open(t, dial(), "sb-1", third); r.OK || !strings.Contains(r.Error, "as many connections open as it may") {
		t.Errorf("%+v", r)
	}
	for range 2 {
		if r := open(t, dial(), "sb-2", third); !r.OK {
			t.Errorf("another run: %+v", r)
		}
	}
	if !slices.ContainsFunc(d.rejected, func(s string) bool { return strings.HasPrefix(s, "quota.connections api.example:443 ") }) {
		t.Errorf("%q", d.rejected)
	}
}

// TestConnectionsInASecondAreCapped: one run's, however soon it closes each, and none of another's. One more may be made
// when its second has come.
func TestConnectionsInASecondAreCapped(t *testing.T) {
	at, clock := newPlace(t), &handClock{}
	d := &fakeDoor{allowed: hosts()}
	dial := serveUplink(t, egress.Config{Door: d, Limits: egress.Limits{Connects: 1}, Dialer: pinned(t, at.Addr()), Now: clock.now})
	connect := func(sandbox string) channel.Reply {
		conn := dial()
		defer conn.Close()
		return open(t, conn, sandbox, channel.Open{Kind: channel.OpenTCP, Name: "api.example", Port: 443})
	}
	refused := func(when string) {
		if r := connect("sb-1"); r.OK || !strings.Contains(r.Error, "makes more connections in a second than it may") {
			t.Errorf("%s: %+v", when, r)
		}
	}
	for i := range 4 {
		if r := connect("sb-1"); !r.OK {
			t.Errorf("connection %d of the first four: %+v", i+1, r)
		}
	}
	refused("the fifth")
	if r := connect("sb-2"); !r.OK {
		t.Errorf("another run: %+v", r)
	}
	clock.advance(time.Second)
	if r := connect("sb-1"); !r.OK {
		t.Errorf("a second later: %+v", r)
	}
	refused("the second one of that second")
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.rejected) != 2 || !strings.HasPrefix(d.rejected[0], door.RuleHostQuota+" api.example:443 ") {
		t.Errorf("on record are %q", d.rejected)
	}
}
