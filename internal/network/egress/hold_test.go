package egress_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/outbound"
)

// askingDoor has every name that fakeDoor does not have wait for a person.
type askingDoor struct {
	fakeDoor
	asks   []door.HostAsk
	gone   int              // of asks, those that were given up
	answer chan door.Answer // what each ask gets in turn
}

func (d *askingDoor) Name(ctx context.Context, ask door.NameAsk) (door.NameAnswer, error) {
	if a, err := d.fakeDoor.Name(ctx, ask); err != nil || a.Answer.Decision.Allowed() || ask.Port != 0 && ask.Port != 80 && ask.Port != 443 {
		return a, err
	}
	return door.NameAnswer{Answer: door.Answer{Decision: policy.Decision{Effect: policy.Hold}}, Ports: []int{80, 443}}, nil
}

func (d *askingDoor) AwaitHost(ctx context.Context, ask door.HostAsk) (door.Answer, error) {
	d.mu.Lock()
	d.asks = append(d.asks, ask)
	d.change()
	d.mu.Unlock()
	select {
	case a := <-d.answer:
		return a, nil
	case <-ctx.Done():
		d.mu.Lock()
		defer d.mu.Unlock()
		d.gone++
		d.change()
		return door.Answer{}, ctx.Err()
	}
}

// asked is a resolver of the world that notes what it is asked.
type asked struct {
	mu    sync.Mutex
	names []string
}

func (a *asked) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.names = append(a.names, host)
	return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
}

func (a *asked) list() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.names)
}

func yes() door.Answer { return door.Answer{Decision: policy.Decision{Effect: policy.Allow}} }

// TestAHeldConnection: its client waits, where it has said which host it means, and goes
// on when a person has said yes. Until then nothing is looked up or dialled.
func TestAHeldConnection(t *testing.T) {
	at := newPlace(t)
	s := serveTLS(t, at, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello "+r.Host) }))
	d := &askingDoor{answer: make(chan door.Answer)}
	dial := uplinkTo(t, &d.fakeDoor, egress.Limits{}, pinned(t, at.Addr()), d)
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenDNS, Name: "api.example"}); !r.OK || !r.DNS.Exists || !slices.Equal(r.DNS.Ports, []int{80, 443}) {
		t.Errorf("DNS: %+v", r)
	}
	conn := tls.Client(to(t, dial(), "api.example", 443), config(s, "api.example"))
	got := make(chan string, 1)
	go func() {
		_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n")
		text, readErr := io.ReadAll(conn)
		got <- fmt.Sprint(string(text), err, readErr)
	}()
	d.until(t, "the question", func() bool { return len(d.asks) == 1 })
	if at.reached() != 0 || len(d.begun) != 0 {
		t.Errorf("%d connections before anybody answered", at.reached())
	}
	d.answer <- yes()
	if text := <-got; !strings.Contains(text, "hello api.example") {
		t.Error(text)
	}
	if want := (door.HostAsk{Sandbox: "sb-1", Name: "api.example", Port: 443, Protocol: "tls"}); d.asks[0] != want || len(d.begun) != 1 || !d.begun[0].Pinned {
		t.Errorf("%+v, %+v", d.asks, d.begun)
	}
}

// TestAHeldRequest is the same over plain HTTP, whose refusal has the person's words.
func TestAHeldRequest(t *testing.T) {
	at := newPlace(t)
	d := &askingDoor{answer: make(chan door.Answer)}
	dial := uplinkTo(t, &d.fakeDoor, egress.Limits{}, pinned(t, at.Addr()), d)
	conn := to(t, dial(), "api.example", 80)
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: api.example\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	d.until(t, "the question", func() bool { return len(d.asks) == 1 && d.asks[0].Protocol == "http" })
	d.answer <- door.Answer{Decision: policy.Decision{Effect: policy.Hold, Reason: "it waits"}, Approval: "ap-1", RequestID: "n-9"}
	text, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 403") || !strings.Contains(string(text), "it waits; request ap-1; a person approves it on the host: cofferdam approvals approve ap-1; try again then") {
		t.Errorf("%q %v", text, err)
	}
	if at.reached() != 0 || len(d.begun) != 0 || len(d.rejected) != 0 {
		t.Errorf("%d connections, %v, %v", at.reached(), d.begun, d.rejected)
	}
}

// TestWhatAHeldNameTellsTheWorld is C-NE-10: neither a DNS question nor a connection that
// waits, is denied or given up has the world's resolvers asked; the control, what a person
// approved, has.
func TestWhatAHeldNameTellsTheWorld(t *testing.T) {
	world := &asked{}
	d := &askingDoor{answer: make(chan door.Answer)}
	dial := uplinkTo(t, &d.fakeDoor, egress.Limits{Look: 10 * time.Millisecond}, outbound.NewDialer(nil, world), d)
	for i := range 20 {
		open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenDNS, Name: fmt.Sprintf("secret-%d.evil.example", i)})
	}
	said := firstHello(t, "a.evil.example")
	begin := func() io.ReadCloser {
		n := len(d.asks)
		conn := to(t, dial(), "a.evil.example", 443)
		if _, err := io.WriteString(conn, said); err != nil {
			t.Fatal(err)
		}
		d.until(t, "the question", func() bool { return len(d.asks) == n+1 })
		return conn
	}
	denied := begin()
	d.answer <- door.Answer{Decision: policy.Decision{Effect: policy.Deny, Reason: "a person said no"}}
	if text, _ := io.ReadAll(denied); string(text) != "\x15\x03\x01\x00\x02\x02\x31" {
		t.Errorf("denied: %q", text)
	}
	if err := begin().Close(); err != nil { // its client gives up, which nobody reads
		t.Fatal(err)
	}
	d.until(t, "the end of the wait", func() bool { return d.gone == 1 })
	if names := world.list(); len(names) > 0 {
		t.Errorf("the world was asked about %q", names)
	}
	approved := begin()
	d.answer <- yes()
	_, _ = io.ReadAll(approved) // it leads to a private address, which is refused
	d.until(t, "the refusal", func() bool { return len(d.rejected) == 1 })
	if names := world.list(); !slices.Equal(names, []string{"a.evil.example."}) || !strings.HasPrefix(d.rejected[0], "network.address a.evil.example:443 ") {
		t.Errorf("%q, %q", names, d.rejected)
	}
}

// TestWhatIsNotHeld: registries, other ports, other protocols and clients that mean
// another host: about these nobody is asked.
func TestWhatIsNotHeld(t *testing.T) {
	d := &askingDoor{answer: make(chan door.Answer)}
	dial := uplinkTo(t, &d.fakeDoor, egress.Limits{HelloTime: 200 * time.Millisecond}, nil, d)
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "index.example", Port: 80}); r.OK || !strings.Contains(r.Error, "is a registry") {
		t.Errorf("a registry past the gateway: %+v", r)
	}
	if r := open(t, dial(), "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "new.example", Port: 22}); r.OK {
		t.Errorf("another port: %+v", r)
	}
	for _, sent := range []string{"\x00\x01", "", firstHello(t, "evil.example"), "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "\x16\x03\x01\x00\x00"} {
		conn := to(t, dial(), "new.example", 443)
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(conn) // until it is ended
	}
	if len(d.asks) > 0 {
		t.Errorf("a person is asked about %+v", d.asks)
	}
	// The control: who means it has a person asked.
	bounded := uplinkTo(t, &d.fakeDoor, egress.Limits{}, nil, d)
	if _, err := io.WriteString(to(t, bounded(), "new.example", 443), firstHello(t, "new.example")); err != nil {
		t.Fatal(err)
	}
	d.until(t, "the question", func() bool { return len(d.asks) == 1 })
}
