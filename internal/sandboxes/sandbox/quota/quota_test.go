package quota_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/quota"
)

func refused(t *testing.T, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("%v is no refusal for a quota", err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not name %q", err, w)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	share := quota.Share{Token: "t", CPU: 0.1, MemoryBytes: 1 << 30, DiskBytes: 2 << 30}
	for name, c := range map[string]struct {
		quota token.Quota
		fit   int
		words []string
	}{
		"sandboxes": {token.Quota{Sandboxes: 3}, 3, []string{"3 sandboxes", "quota is 3"}},
		"one":       {token.Quota{Sandboxes: 1}, 1, []string{"has 1 sandbox,", "quota is 1"}},
		"cpu":       {token.Quota{CPU: 0.3}, 3, []string{"0.3 CPU", "0.4 CPU"}},
		"memory":    {token.Quota{MemoryBytes: 5<<30 + 1}, 5, []string{"5120 MiB of memory", "6144"}},
		"disk":      {token.Quota{DiskBytes: 8 << 30}, 4, []string{"8192 MiB of disk", "10240"}},
		"none":      {token.Quota{}, 50, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := quota.NewBook(quota.Host{})
			for i := range c.fit {
				if err := b.Take(fmt.Sprint(i), share, c.quota); err != nil {
					t.Fatalf("%d: %v", i, err)
				}
			}
			if name == "none" {
				return
			}
			refused(t, b.Take("more", share, c.quota), c.words...)
			other := share
			other.Token = "u"
			if err := b.Take("other", other, c.quota); err != nil {
				t.Errorf("another token's: %v", err)
			}
			b.Drop("0")
			b.Drop("0")
			if err := b.Take("more", share, c.quota); err != nil {
				t.Errorf("after one was given back: %v", err)
			}
			refused(t, b.Take("yet more", share, c.quota))
		})
	}
}

// TestRest: on disk a sandbox counts as one, with its disk, and with nothing else.
func TestRest(t *testing.T) {
	t.Parallel()
	q := token.Quota{Sandboxes: 2, CPU: 1, MemoryBytes: 1 << 30, DiskBytes: 2 << 30}
	share := quota.Share{Token: "t", CPU: 1, MemoryBytes: 1 << 30, DiskBytes: 1 << 30}
	b := quota.NewBook(quota.Host{})
	if err := b.Take("a", share, q); err != nil {
		t.Fatal(err)
	}
	refused(t, b.Take("b", share, q), "CPU")
	b.Rest("a")
	if err := b.Take("b", share, q); err != nil {
		t.Fatal(err)
	}
	refused(t, b.Take("c", share, q), "2 sandboxes")
	refused(t, b.Wake("a", q), "CPU")
	b.Rest("b")
	for range 2 {
		if err := b.Wake("a", q); err != nil {
			t.Error(err)
		}
	}
	refused(t, b.Wake("b", q), "CPU")
	b.Rest("a")
	b.Resumed("a") // it runs, whoever let it
	b.Resumed("nobody")
	refused(t, b.Wake("b", q), "CPU")
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, q := quota.NewBook(quota.Host{}), token.Quota{CreatesPerMinute: 6, Sandboxes: 100}
		n := 0
		take := func() error {
			n++
			return b.Take(fmt.Sprint(n), quota.Share{Token: "t"}, q)
		}
		for range 6 {
			if err := take(); err != nil {
				t.Fatal(err)
			}
		}
		err := take()
		refused(t, err, "6 sandboxes a minute")
		if wait := fault.RetryAfter(err); wait != 10*time.Second {
			t.Errorf("it is to be tried again in %s", wait)
		}
		time.Sleep(10*time.Second - time.Millisecond)
		refused(t, take())
		time.Sleep(time.Millisecond)
		if err := take(); err != nil {
			t.Error(err)
		}
		refused(t, take())
		time.Sleep(time.Hour) // the bucket holds a minute's worth
		for range 6 {
			if err := take(); err != nil {
				t.Fatal(err)
			}
		}
		refused(t, take())
	})
}

// TestAtOnce: fifty at once do not get past a quota of seven.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	b := quota.NewBook(quota.Host{})
	var group sync.WaitGroup
	var taken atomic.Int64
	for i := range 50 {
		group.Go(func() {
			if b.Take(fmt.Sprint(i), quota.Share{Token: "t"}, token.Quota{Sandboxes: 7}) == nil {
				taken.Add(1)
			}
		})
	}
	group.Wait()
	if taken.Load() != 7 {
		t.Errorf("%d were taken", taken.Load())
	}
}

// TestAHostIsPromisedOnce: what all sandboxes have together is bounded, whoever has them, and
// also those of no token. One at rest is promised nothing, and wakes only where there is room.
func TestAHostIsPromisedOnce(t *testing.T) {
	t.Parallel()
	share := func(token string) quota.Share { return quota.Share{Token: token, CPU: 2, MemoryBytes: 2 << 30} }
	for name, c := range map[string]struct {
		host  quota.Host
		words []string
	}{
		"memory": {quota.Host{MemoryBytes: 6 << 30}, []string{"this host is full", "6144 MiB of memory", "8192 MiB of memory", "overcommit.memory"}},
		"cpu":    {quota.Host{CPU: 6}, []string{"this host is full", "6 CPU", "8 CPU", "overcommit.cpu"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := quota.NewBook(c.host)
			for i, token := range []string{"", "t", "u"} {
				if err := b.Take(fmt.Sprint(i), share(token), token3()); err != nil {
					t.Fatal(err)
				}
			}
			full := func(err error) { // and how much others have is nothing to whoever asks
				t.Helper()
				refused(t, err, "this host is full", "overcommit."+name)
				if strings.ContainsAny(fmt.Sprint(err), "0123456789") {
					t.Errorf("it tells how much the others have: %v", err)
				}
			}
			for _, token := range []string{"", "t", "v"} {
				full(b.Take("more", share(token), token3()))
			}
			refused(t, b.MayPromise(share("")), c.words...)
			if wait := fault.RetryAfter(b.MayPromise(share(""))); wait <= 0 {
				t.Error("nothing says when to ask again")
			}
			b.Rest("0")
			if sum, n := b.Promised(); sum.CPU != 4 || sum.MemoryBytes != 4<<30 || n != 3 {
				t.Errorf("%d shares are promised %+v", n, sum)
			}
			if err := b.Take("more", share("v"), token3()); err != nil {
				t.Error(err)
			}
			full(b.Wake("0", token3()))
			b.Drop("more")
			if err := b.Wake("0", token3()); err != nil {
				t.Error(err)
			}
			b.Put("there", share("w"), false) // whatever the host says: it is there
			large := quota.Share{CPU: 7, MemoryBytes: 7 << 30}
			refused(t, quota.NewBook(c.host).MayPromise(large), "together", "overcommit."+name)
		})
	}
}

func token3() token.Quota { return token.Quota{Sandboxes: 3} }
