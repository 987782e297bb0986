package egress_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// stuckDoor takes no end of a request until its test lets it.
type stuckDoor struct {
	*judgingDoor
	telling, let chan struct{}
	begun        sync.Once
}

func (d *stuckDoor) Requested(ctx context.Context, done door.RequestsDone) error {
	d.begun.Do(func() { close(d.telling) })
	<-d.let
	return d.judgingDoor.Requested(ctx, done)
}

// TestACutDoesNotWaitForRecords: while the log takes no end of a request, connections are
// looked at again and again, and one that may not go on ends.
func TestACutDoesNotWaitForRecords(t *testing.T) {
	hold := make(chan struct{})
	e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/good/long" {
			w.(http.Flusher).Flush()
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
	}), "api.example")
	defer close(hold)
	d := &stuckDoor{judgingDoor: e.door, telling: make(chan struct{}), let: make(chan struct{})}
	e.dial = uplinkTo(t, e.door.fakeDoor, egress.Limits{Look: time.Millisecond}, e.dialer, d)
	defer close(d.let)
	busy, long := e.client(t, false), e.client(t, false)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/good/long", nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := long.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	ask(t, busy, http.MethodGet, "https://api.example/good/short", nil)
	<-d.telling // and it goes on
	d.mu.Lock()
	before := d.looks
	d.mu.Unlock()
	d.until(t, "two more looks", func() bool { return d.looks >= before+2 })
	d.mu.Lock()
	d.gone = true
	d.mu.Unlock()
	if _, err := io.ReadAll(a.Body); err == nil {
		t.Error("the connection ended well")
	}
}

// TestAnswersThatNobodyReads: a hundred large ones on one connection are kept within a bound.
// The control is that the host sends as much as it is let.
func TestAnswersThatNobodyReads(t *testing.T) {
	var sent atomic.Int64
	piece := make([]byte, 64<<10)
	e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 64 {
			n, err := w.Write(piece)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}), "api.example")
	c := e.client(t, true)
	// The client takes no more than what it must.
	c.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 1, MaxReceiveBufferPerConnection: 64 << 10}
	var clients sync.WaitGroup
	answers := make(chan *http.Response, 100)
	for i := range cap(answers) {
		clients.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprint("https://api.example/good/", i), nil)
			if err != nil {
				t.Error(err)
				return
			}
			if a, err := c.Do(r); err == nil {
				answers <- a
			}
		})
	}
	clients.Wait()
	close(answers)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for last, same := int64(0), 0; same < 50; <-tick.C { // until nothing more is taken
		if n := sent.Load(); n != last || n == 0 {
			last, same = n, 0
		} else {
			same++
		}
	}
	if n := sent.Load(); n < 1<<20 || n > 64<<20 {
		t.Errorf("the host sent %d bytes of %d", n, 100*64*int64(len(piece)))
	}
	for a := range answers {
		_ = a.Body.Close()
	}
}

// TestUploadsSideBySide: many that are read whole, on one connection, all get through, although
// only some are read at a time.
func TestUploadsSideBySide(t *testing.T) {
	e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	}), "api.example")
	c := e.client(t, true)
	ask(t, c, http.MethodPost, "https://api.example/searched", strings.NewReader("first")) // so that there is one connection
	var clients sync.WaitGroup
	const size = 500_000
	for range 40 {
		clients.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/searched", strings.NewReader(strings.Repeat("x", size)))
			if err != nil {
				t.Error(err)
				return
			}
			a, err := c.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer a.Body.Close()
			if said, err := io.ReadAll(a.Body); err != nil || string(said) != fmt.Sprint(size, " <nil>") {
				t.Errorf("%d %s %v", a.StatusCode, said, err)
			}
		})
	}
	clients.Wait()
}

// TestBodiesThatTheHostDoesNotRead: those that were looked through stay in memory until the host
// has read them, and count until then: no others are read meanwhile. The control is that all
// arrive once it reads. All is over HTTP/2, whose window keeps a body from going to the host, a
// part aside; over HTTP/1.1 the kernel's buffers may take all of one, which is gone then.
func TestBodiesThatTheHostDoesNotRead(t *testing.T) {
	const document = `network_allowlist:
  - { host: api.example, methods: [POST], paths: ["/searched"], max_body: 4MB, deny_patterns: ["(?i)secret-[0-9]+"] }
`
	var arrived atomic.Int64
	reads := make(chan struct{})
	e := endLimited(t, egress.Limits{MemoryTime: time.Minute, Connects: 1000}, document, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived.Add(1)
		<-reads
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	}), "api.example")
	const size, uploads, places = 4_000_000, 16, 4
	body := strings.Repeat("x", size)
	var clients sync.WaitGroup
	for range uploads {
		clients.Go(func() {
			if status, said := ask(t, e.client(t, true), http.MethodPost, "https://api.example/searched", strings.NewReader(body)); status != http.StatusOK || said != fmt.Sprint(size) {
				t.Errorf("%d %s", status, said)
			}
		})
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for last, same := int64(0), 0; same < 50; <-tick.C { // until no more arrive
		if n := arrived.Load(); n != last || n == 0 {
			last, same = n, 0
		} else {
			same++
		}
	}
	if n := arrived.Load(); n > places {
		t.Errorf("%d bodies of %d are kept, which the host does not read; there is room for %d", n, uploads, places)
	}
	close(reads)
	clients.Wait()
	if n := arrived.Load(); n != uploads {
		t.Errorf("%d of %d arrived", n, uploads)
	}
}
