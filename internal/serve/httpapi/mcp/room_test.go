package mcp_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/mcp"
)

// TestMessagesOfOneTokenTakeRoom: what the daemon holds of requests that have not come whole is bounded
// for each token ("16 MiB per token", docs/operations.md), over the Model Context Protocol as over the
// other wires.
func TestMessagesOfOneTokenTakeRoom(t *testing.T) {
	h := newHouse(t)
	s := newServer(h, func(c *mcp.Config) {
		c.Connect = func(context.Context, string) (mcp.Backend, error) { return mcp.Over(h.client), nil }
	})
	handler := s.Handler(&tokens{revoked: map[string]bool{}}, func(context.Context) {})
	const head = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`
	ask := func(body io.Reader) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp", body)
		r.Header.Set("Authorization", "Bearer one")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	if w := ask(bytes.NewReader([]byte(head + `little"}}`))); w.Code != http.StatusOK {
		t.Fatalf("%d %.200s", w.Code, w.Body)
	}
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const requests, each = 32, 3_900_000 // of 4 MiB
	before := inUse()
	var held atomic.Int64
	var sending, over sync.WaitGroup
	for range requests {
		body, sender := io.Pipe()
		t.Cleanup(func() { _ = sender.CloseWithError(io.ErrUnexpectedEOF) })
		over.Go(func() {
			ask(body)
			_ = body.CloseWithError(io.ErrClosedPipe) // as the server does
		})
		sending.Go(func() {
			piece := bytes.Repeat([]byte("x"), 64<<10)
			if _, err := io.WriteString(sender, head); err != nil {
				return
			}
			taken := 0
			for taken < each {
				if _, err := sender.Write(piece); err != nil {
					return // it was refused, and is let go of
				}
				taken += len(piece)
			}
			held.Add(int64(taken))
		})
	}
	sending.Wait()
	grown := inUse() - before
	t.Logf("%d requests that have not come whole: %d MiB, and %d MiB of heap", requests, held.Load()>>20, grown>>20)
	if held.Load() > backend.RoomEach || grown > 3*backend.RoomEach {
		t.Errorf("%d requests of one token have the daemon hold %d MiB (%d MiB of heap); its room is %d MiB", requests, held.Load()>>20, grown>>20, backend.RoomEach>>20)
	}
}

// slow is the connection of a client that takes nothing for a while.
type slow struct {
	*httptest.ResponseRecorder

	deadline time.Time
	hasty    int // writes and flushes without a deadline
	writes   int
}

// SetWriteDeadline serves http.ResponseController.
func (s *slow) SetWriteDeadline(at time.Time) error {
	s.deadline = at
	return nil
}

// Write implements io.Writer.
func (s *slow) Write(p []byte) (int, error) {
	s.note()
	return s.ResponseRecorder.Write(p)
}

// FlushError serves http.ResponseController.
func (s *slow) FlushError() error {
	s.note()
	s.Flush()
	return nil
}

func (s *slow) note() {
	if s.writes++; s.deadline.IsZero() {
		s.hasty++
	}
}

// TestResultsHaveADeadline: a result has room of its token's until its client has taken it, so it must be
// taken in time. Then the connection has no deadline any more.
func TestResultsHaveADeadline(t *testing.T) {
	h := newHouse(t)
	s := newServer(h, func(c *mcp.Config) {
		c.Connect = func(context.Context, string) (mcp.Backend, error) { return mcp.Over(h.client), nil }
	})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	r.Header.Set("Authorization", "Bearer one")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	w := &slow{ResponseRecorder: httptest.NewRecorder()}
	s.Handler(&tokens{revoked: map[string]bool{}}, nil).ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.writes == 0 {
		t.Fatalf("%d %.200s", w.Code, w.Body)
	}
	if w.hasty > 0 || !w.deadline.IsZero() {
		t.Errorf("%d of %d writes have no deadline; the connection's is %s in the end", w.hasty, w.writes, w.deadline)
	}
}
