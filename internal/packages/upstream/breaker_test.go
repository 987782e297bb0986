package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// pageFor asks for a page on behalf of a guest.
func pageFor(t *testing.T, c *upstream.Client, guest, location string) error {
	t.Helper()
	_, err := c.Page(fairqueue.For(t.Context(), guest), upstream.PageAsk{URL: location}, &upstream.Memory{})
	return err
}

// breaking makes a client break soon.
func breaking(_ *upstream.Config, o *upstream.Options) {
	o.Limits.BreakAfter, o.Limits.BreakFor, o.Limits.Attempts = 3, time.Hour, 1
}

// deaf resolves all names to an address at which nobody listens, and counts.
type deaf struct {
	*liar.Server
	down  atomic.Bool
	asked atomic.Int64
}

func (d *deaf) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	d.asked.Add(1)
	if d.down.Load() {
		return nil, errors.New("the network is gone")
	}
	return d.Server.LookupNetIP(ctx, network, host)
}

// TestBreaker: who could not connect several times in a row is kept waiting, and
// asks again later. One answer to anybody ends it.
func TestBreaker(t *testing.T) {
	s := &deaf{Server: registry(t)}
	s.Script("index.example/simple/a/", liar.Body("text/x", []byte("page")))
	s.down.Store(true)
	c := client(t, s.Server, func(cfg *upstream.Config, o *upstream.Options) {
		breaking(cfg, o)
		o.Resolver = s
	})
	a := s.URL(index, "/simple/a/")
	for range 10 {
		if err := pageFor(t, c, "one", a); !errors.Is(err, fault.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if n := s.asked.Load(); n != 3 {
		t.Errorf("%d tries to connect, want 3", n)
	}
	s.down.Store(false)
	if err := pageFor(t, c, "one", a); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("before the pause is over: %v", err)
	}
	if err := pageFor(t, c, "another", a); err != nil {
		t.Errorf("who never failed: %v", err)
	}
	if err := pageFor(t, c, "one", a); err != nil {
		t.Errorf("after another was answered: %v", err)
	}
}

// TestBreakerTriesAgain after its pause, once for each pause.
func TestBreakerTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tried int
		c, err := upstream.New(upstream.Config{Ecosystem: "python", Index: "https://index.example/simple/"}, upstream.Options{
			Recorder: &ledger{},
			Resolver: resolver(func() ([]netip.Addr, error) { tried++; return nil, errors.New("down") }),
			Limits:   upstream.Limits{BreakAfter: 2, BreakFor: time.Minute, Attempts: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for round := range 3 {
			for range 5 {
				if err := pageFor(t, c, "one", "https://index.example/simple/a/"); !errors.Is(err, fault.ErrUnavailable) {
					t.Fatal(err)
				}
			}
			if want := 2 + round; tried != want {
				t.Errorf("round %d: %d tries, want %d", round, tried, want)
			}
			time.Sleep(time.Minute)
		}
	})
}

type resolver func() ([]netip.Addr, error)

// LookupNetIP implements upstream.Resolver.
func (r resolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return r() }

// TestFailingNamesStopNobody: what the upstream says of one guest's names, or
// that it has no answer to them, keeps neither that guest nor another from the
// names that it answers for.
func TestFailingNamesStopNobody(t *testing.T) {
	for name, reply := range map[string]liar.Reply{"500": liar.Status(500), "cut": liar.Cut(), "silence": liar.Silence(), "429": liar.Busy(429, 3600)} {
		t.Run(name, func(t *testing.T) {
			s := registry(t)
			s.Script("index.example/simple/good/", liar.Body("text/x", []byte("page")))
			c := client(t, s, func(cfg *upstream.Config, o *upstream.Options) {
				breaking(cfg, o)
				if name == "silence" {
					o.Limits.HeaderWait = 300 * time.Millisecond // which holds for the good page, too
				}
			})
			for i := range 6 {
				project := fmt.Sprintf("/simple/bad%d/", i)
				s.Script("index.example"+project, reply)
				if err := pageFor(t, c, "bad", s.URL(index, project)); !errors.Is(err, fault.ErrUnavailable) {
					t.Fatalf("%s: %v", project, err)
				}
			}
			for _, guest := range []string{"good", "bad", upstream.Itself} {
				if err := pageFor(t, c, guest, s.URL(index, "/simple/good/")); err != nil {
					t.Errorf("%q after another's failing names: %v", guest, err)
				}
			}
		})
	}
}

// TestManyGuestsWithoutAnswer leave a host alone that takes connections and never
// answers; a guest that has not failed finds out when it answers again.
func TestManyGuestsWithoutAnswer(t *testing.T) {
	s := registry(t)
	s.Script("index.example/simple/a/", liar.Status(503))
	c := client(t, s, breaking)
	a := s.URL(index, "/simple/a/")
	for i := range 12 {
		if err := pageFor(t, c, fmt.Sprintf("guest %d", i%3), a); !errors.Is(err, fault.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if n := s.Count("index.example/simple/a/"); n != 3 {
		t.Errorf("%d requests reached an upstream that answers nobody, want 3", n)
	}
	s.Script("index.example/simple/a/", liar.Body("text/x", []byte("page")))
	if err := pageFor(t, c, "new", a); err != nil {
		t.Errorf("a guest that never failed: %v", err)
	}
	if err := pageFor(t, c, "guest 0", a); err != nil {
		t.Errorf("after somebody was answered: %v", err)
	}
}

// TestAFileHostThatIsDown stops nobody from asking the index.
func TestAFileHostThatIsDown(t *testing.T) {
	s := registry(t)
	s.Script("index.example/simple/a/", liar.Body("text/x", []byte("page")))
	s.Resolve(files)
	c := client(t, s, breaking)
	for range 5 {
		if err := c.File(asking(t), upstream.FileAsk{URL: s.URL(files, "/f")}, &upstream.Memory{}); !errors.Is(err, fault.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if err := pageFor(t, c, upstream.Itself, s.URL(index, "/simple/a/")); err != nil {
		t.Errorf("the index: %v", err)
	}
}

// TestSlowNamesDelayOnlyTheirGuest: who asks for names that never come waits
// behind these, and nobody else does.
func TestSlowNamesDelayOnlyTheirGuest(t *testing.T) {
	s := registry(t)
	s.Script("index.example/simple/slow/", liar.Silence())
	s.Script("index.example/simple/good/", liar.Body("text/x", []byte("page")))
	c := client(t, s, func(_ *upstream.Config, o *upstream.Options) {
		o.Limits.HeaderWait, o.Limits.PageTime = time.Hour, time.Hour
	})
	ctx, cancel := context.WithCancel(asking(t))
	asked := make(chan error)
	const slow = 64
	for range slow {
		go func() {
			_, err := c.Page(fairqueue.For(ctx, "bad"), upstream.PageAsk{URL: s.URL(index, "/simple/slow/")}, &upstream.Memory{})
			asked <- err
		}()
	}
	for s.Count("index.example/simple/slow/") < 12 { // all that one guest may have
		if t.Context().Err() != nil {
			t.Fatal("the slow names were not asked for")
		}
		time.Sleep(time.Millisecond)
	}
	for i := range 4 {
		if err := pageFor(t, c, fmt.Sprintf("good %d", i), s.URL(index, "/simple/good/")); err != nil {
			t.Errorf("another guest: %v", err)
		}
	}
	cancel()
	for range slow {
		if err := <-asked; !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("a slow name: %v", err)
		}
	}
	if n := s.Count("index.example/simple/slow/"); n > 12 {
		t.Errorf("%d slow requests at a time, want at most 12", n)
	}
}
