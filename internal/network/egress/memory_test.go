package egress_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

const memoryRule = "quota.gateway_memory"

// refusedMemory tells whether a refusal for want of memory is on record.
func (e *end) refusedMemory() bool {
	e.door.mu.Lock()
	defer e.door.mu.Unlock()
	return slices.ContainsFunc(e.door.rejected, func(s string) bool { return strings.HasPrefix(s, memoryRule+" api.example:443 ") })
}

// opens opens a connection to the host for a sandbox, or says why not.
func (e *end) opens(t *testing.T, sandbox string) (net.Conn, string) {
	t.Helper()
	conn := e.dial()
	r := open(t, conn, sandbox, channel.Open{Kind: channel.OpenTCP, Name: "api.example", Port: 443})
	return conn, r.Error
}

// waitUntil waits for what must come.
func waitUntil(t *testing.T, what string, met func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !met() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("it did not become true that %s", what)
		}
	}
}

// TestConnectionsTakeMemory: of one sandbox as many as its budget has room for, another's have
// theirs, and what ends gives back all that it had.
func TestConnectionsTakeMemory(t *testing.T) {
	e := endLimited(t, egress.Limits{Memory: 2 << 20, Connects: 1000, Opens: 1000}, judgedDocument, http.NotFoundHandler(), "api.example")
	for range 3 { // as many again: what has ended holds nothing
		var all []net.Conn
		waitUntil(t, "there is room for eight", func() bool { // which those before give back
			conn, problem := e.opens(t, "sb-1")
			if problem != "" {
				_ = conn.Close()
			} else {
				all = append(all, conn)
			}
			return len(all) == 8
		})
		conn, problem := e.opens(t, "sb-1")
		if !strings.Contains(problem, "as much in the gateway's memory as it may (2 MiB") || !e.refusedMemory() {
			t.Fatalf("one too many: %q", problem)
		}
		_ = conn.Close()
		other, problem := e.opens(t, "sb-2")
		if problem != "" {
			t.Errorf("another sandbox's: %s", problem)
		}
		_ = other.Close()
		for _, conn := range all {
			_ = conn.Close()
		}
	}
}

// TestRequestsTakeMemory: many with long headers, side by side on one connection. Those that
// find no room are refused with the rule, the others arrive whole, and when they have ended
// there is room again.
func TestRequestsTakeMemory(t *testing.T) {
	var under, most atomic.Int64
	release := make(chan struct{})
	e := endLimited(t, egress.Limits{Memory: 4 << 20}, judgedDocument, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/good/first" {
			return
		}
		n := under.Add(1)
		for was := most.Load(); n > was; was = most.Load() {
			if most.CompareAndSwap(was, n) {
				break
			}
		}
		<-release
		under.Add(-1)
	}), "api.example")
	c := e.client(t, true)
	ask(t, c, http.MethodGet, "https://api.example/good/first", nil) // so that there is one connection
	burst := func() (passed, refused int64) {
		var ok, full atomic.Int64
		var clients sync.WaitGroup
		for range 50 {
			clients.Go(func() {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/good/x", nil)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range 10 {
					r.Header.Set(fmt.Sprint("X-Long-", i), strings.Repeat("x", 2000))
				}
				a, err := c.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer a.Body.Close()
				said, _ := io.ReadAll(a.Body)
				switch {
				case a.StatusCode == http.StatusOK:
					ok.Add(1)
				case a.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(said), "(rule "+memoryRule+")"):
					full.Add(1)
				default:
					t.Errorf("%d %s", a.StatusCode, said)
				}
			})
		}
		waitUntil(t, "all are under way or refused", func() bool { return under.Load()+full.Load() == 50 })
		close(release)
		clients.Wait()
		release = make(chan struct{})
		return ok.Load(), full.Load()
	}
	first, refused := burst()
	if first < 10 || refused < 10 || !e.refusedMemory() {
		t.Errorf("%d passed and %d were refused", first, refused)
	}
	if again, _ := burst(); again < first {
		t.Errorf("%d passed after the others had ended, not %d: something is not given back", again, first)
	}
}

// TestAnswersTakeMemory: over HTTP/2 a host sends them ahead, so that a connection to it has room
// for as much. One that finds none is not used, while HTTP/1.1 needs none.
func TestAnswersTakeMemory(t *testing.T) {
	e := endLimited(t, egress.Limits{Memory: 2 << 20}, judgedDocument, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), "api.example")
	for _, c := range []struct {
		what   string
		http2  bool
		status int
	}{{"the first over HTTP/2", true, http.StatusOK}, {"the second", true, http.StatusServiceUnavailable}, {"one over HTTP/1.1", false, http.StatusOK}} {
		status, said := ask(t, e.client(t, c.http2), http.MethodGet, "https://api.example/good/x", nil) // which stays open
		if status != c.status || (status != http.StatusOK) != strings.Contains(said, "(rule "+memoryRule+")") {
			t.Errorf("%s: %d %s", c.what, status, said)
		}
	}
}

// TestSlowBodiesTakeMemory: one that is read whole has its room before it comes, however slowly
// that is. Another waits for it, and no longer than it may.
func TestSlowBodiesTakeMemory(t *testing.T) {
	const size = 1_000_000 // the longest that is looked through
	e := endLimited(t, egress.Limits{Memory: 10 << 20, MemoryTime: 50 * time.Millisecond}, judgedDocument, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	}), "api.example")
	for range 2 {
		slow, feed := io.Pipe()
		type said struct {
			status int
			text   string
		}
		answered := make(chan said, 1)
		go func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/searched", slow)
			if err != nil {
				t.Error(err)
				return
			}
			r.ContentLength = size
			a, err := e.client(t, false).Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer a.Body.Close()
			text, _ := io.ReadAll(a.Body)
			answered <- said{a.StatusCode, string(text)}
		}()
		if _, err := io.WriteString(feed, strings.Repeat("x", size/2)); err != nil {
			t.Fatal(err)
		}
		body := strings.Repeat("x", size)
		status, text := ask(t, e.client(t, false), http.MethodPost, "https://api.example/searched", strings.NewReader(body))
		if status != http.StatusServiceUnavailable || !strings.Contains(text, "(rule "+memoryRule+")") {
			t.Errorf("beside one that takes the memory: %d %s", status, text)
		}
		if status, text = ask(t, e.client(t, false), http.MethodPost, "https://api.example/good/x", strings.NewReader(body)); status != http.StatusOK {
			t.Errorf("one that is not read whole: %d %s", status, text)
		}
		if _, err := io.WriteString(feed, strings.Repeat("x", size/2)); err != nil {
			t.Fatal(err)
		}
		_ = feed.Close()
		if got := <-answered; got != (said{http.StatusOK, fmt.Sprint(size)}) {
			t.Errorf("the slow one: %+v", got)
		}
		if status, text = ask(t, e.client(t, false), http.MethodPost, "https://api.example/searched", strings.NewReader(body)); status != http.StatusOK {
			t.Errorf("after it: %d %s", status, text)
		}
	}
}
