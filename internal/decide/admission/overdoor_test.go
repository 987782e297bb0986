package admission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
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
func serve(tb testing.TB, d door.Door) (*door.Client, <-chan error) {
	tb.Helper()
	daemon, gateway := connect(tb)
	ctx, cancel := context.WithCancel(tb.Context())
	served := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { served <- door.Serve(ctx, daemon, d) })
	c := door.NewClient(gateway)
	tb.Cleanup(func() {
		c.Close()
		cancel()
		wg.Wait()
	})
	return c, served
}

func TestTheDoorIsTheSameOverAConnection(t *testing.T) {
	direct, remote := newHouse(t, Limits{}), newHouse(t, Limits{})
	cert := door.Certificate{ChainPEM: []byte("chain\x00"), KeyPEM: []byte("key")}
	for _, h := range []*house{direct, remote} {
		h.config.Trust = func(_ context.Context, hosts []string) (door.Certificate, error) {
			if len(hosts) != 1 {
				return door.Certificate{}, errors.New("a secret of the inside")
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
func conversation(t *testing.T, d door.Door) (said []string) {
	t.Helper()
	ctx := t.Context()
	note := func(v any, err error) {
		text := fmt.Sprintf("%+v", v)
		for _, category := range []error{fault.ErrInvalid, fault.ErrNotFound, fault.ErrConflict, fault.ErrForbidden, fault.ErrUnavailable} {
			if errors.Is(err, category) {
				text = "fault " + category.Error() + ": " + err.Error()
			}
		}
		said = append(said, text)
	}
	index := func(ask door.IndexAsk) {
		a, err := d.Index(ctx, ask)
		a.RequestID = fmt.Sprint(len(a.RequestID))
		note(a, err)
	}
	answer := func(a door.Answer, err error) {
		a.RequestID = fmt.Sprint(len(a.RequestID))
		note(a, err)
	}
	page := indexOf("requests", "d", wheel("requests", "2.31.0"), wheel("requests", "2.33.0"))
	index(indexOf("requests", "d"))
	for range 3 {
		index(page)
	}
	index(indexOf("requests", "d"))
	index(door.IndexAsk{Sandbox: "sb1", Package: python("empty", ""), IndexDigest: "e", Files: []door.File{}})
	index(door.IndexAsk{Sandbox: "sb1", Package: python("Bad_", ""), IndexDigest: "e"})
	note(nil, d.Edges(ctx, "sb1", python("requests", "2.31.0"), []door.Requirement{{Name: "idna", Specifier: "<4"}}))
	note(nil, d.Edges(ctx, "sb1", python("other", "1"), nil))
	served, err := d.Serve(ctx, serving("requests", "2.31.0"))
	note(served.Decision, err)
	note(nil, d.Aborted(ctx, "sb1", served.Seq, 7))
	note(nil, d.Aborted(ctx, "sb1", 1234, 7))
	sent, err := d.Serve(ctx, serving("requests", "2.31.0"))
	note(sent.Decision, err)
	note(nil, d.Sent(ctx, "sb1", sent.Seq))
	note(nil, d.Sent(ctx, "sb1", sent.Seq))
	answer(d.Judge(ctx, judging("numpy", "2.0")))
	answer(d.Outline(ctx, door.OutlineAsk{FileAsk: fileAsk("numpy", "2.0")}))
	answer(d.Preview(ctx, previewing("requests", "2.31.0")))
	answer(d.Walk(ctx, door.WalkAsk{FileAsk: fileAsk("requests", "2.33.0")}))
	answer(d.Await(ctx, awaiting("numpy", "2.0")))
	named, err := d.Name(ctx, door.NameAsk{Sandbox: "sb1", Name: "x.example", Port: 443})
	answer(named.Answer, err)
	connected, err := d.Connect(ctx, door.ConnectAsk{Sandbox: "sb1", Name: "x.example", Port: 443, Protocol: "tls", Addresses: []netip.Addr{netip.MustParseAddr("2606::1")}})
	answer(connected, err)
	answer(d.HostRefused(ctx, door.HostRefusal{Sandbox: "sb1", Name: "x.example", Port: 443, Rule: door.RuleHostTLS, Reason: "another"}))
	ended, err := d.Standing(ctx, "sb1", []uint64{7})
	note(ended, err)
	note(nil, d.Disconnected(ctx, door.Disconnection{Sandbox: "sb1", Seq: 7}))
	answer(d.Failed(ctx, door.Failure{Sandbox: "sb1", Package: python("p", "1"), ResolvedBy: policy.ByCanonical, Reason: "bad"}))
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
	h.config.Trust = func(context.Context, []string) (door.Certificate, error) {
		return door.Certificate{}, errors.New("a secret path")
	}
	c, _ := serve(t, h)
	if _, err := c.Trust(t.Context(), nil); err == nil || err.Error() != "the daemon could not answer" {
		t.Errorf("the error is %v", err)
	}
}

func TestConcurrentCallsOverOneConnection(t *testing.T) {
	h := newHouse(t, Limits{})
	c, _ := serve(t, h)
	var wg sync.WaitGroup
	for w := range 100 {
		wg.Go(func() {
			for i := range 5 {
				a, err := c.Serve(t.Context(), serving("requests", "2.31.0"))
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

func bigIndex(n int) door.IndexAsk {
	var files []door.File
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

func benchIndex(b *testing.B, d door.Door) {
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

func benchVerdict(b *testing.B, d door.Door, serve bool) {
	b.Helper()
	ask := func() (door.Answer, error) { return d.Judge(b.Context(), judging("requests", "2.31.0")) }
	if serve {
		ask = func() (door.Answer, error) { return d.Serve(b.Context(), serving("requests", "2.31.0")) }
	}
	for b.Loop() {
		if a, err := ask(); err != nil || !a.Decision.Allowed() {
			b.Fatal(a, err)
		}
	}
}
