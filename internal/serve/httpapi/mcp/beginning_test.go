package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/mcp"
)

// TestASessionBeginsWithLittle: the library keeps what a session begins with for as long as it lives, in no room, so a
// long beginning is refused, of a session that there is as well. The control is a short one.
func TestASessionBeginsWithLittle(t *testing.T) {
	h := newHouse(t)
	s := newServer(h, func(c *mcp.Config) {
		c.Connect = func(context.Context, string) (mcp.Backend, error) { return mcp.Over(h.client), nil }
	})
	t.Cleanup(s.Close)
	handler := s.Handler(&tokens{revoked: map[string]bool{}}, func(context.Context) {})
	secret := "one"
	say := func(body, session string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(body))
		for name, value := range map[string]string{"Authorization": "Bearer " + secret, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	begin := func(length int, session string) *httptest.ResponseRecorder {
		return say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"`+strings.Repeat("n", length)+`","version":"1"}}}`, session)
	}
	short := begin(100, "")
	session := short.Header().Get("Mcp-Session-Id")
	if short.Code != http.StatusOK || session == "" {
		t.Fatalf("the control: %d %s", short.Code, short.Body)
	}
	if w := begin(100_000, ""); w.Code != http.StatusRequestEntityTooLarge || w.Header().Get("Mcp-Session-Id") != "" {
		t.Errorf("a long one: %d %.200s", w.Code, w.Body)
	}
	if w := begin(100_000, session); w.Code == http.StatusOK && !strings.Contains(w.Body.String(), "longer than it may be") {
		t.Errorf("a long one of a session that there is: %d %.200s", w.Code, w.Body)
	}
	// So are the other messages that the library keeps.
	const long, sessions = 3_000_000, 5 // which is what is read of a token at once, and the rest at its pace
	for name, message := range map[string]string{
		"that it has begun": `{"jsonrpc":"2.0","method":"notifications/initialized","params":{"_meta":{"a":"%s"}}}`,
		"a level":           `{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"%s"}}`,
	} {
		secret = map[bool]string{true: "two", false: "one"}[name == "a level"]
		var all []string
		for range sessions {
			all = append(all, begin(100, "").Header().Get("Mcp-Session-Id"))
		}
		before := heapBytes()
		for _, session := range all {
			if session == "" {
				t.Fatal("no session has begun")
			}
			if w := say(fmt.Sprintf(message, strings.Repeat("n", long)), session); w.Code != http.StatusOK && w.Code != http.StatusAccepted {
				t.Fatalf("%s does not come to the library: %d %.200s", name, w.Code, w.Body)
			}
		}
		kept := 0
		for range 100 { // the library has the last message until it has taken the next one, which says nothing that is kept
			for _, session := range all {
				if w := say(`{"jsonrpc":"2.0","id":3,"method":"ping"}`, session); w.Code != http.StatusOK {
					t.Fatalf("a session has ended: %d %.200s", w.Code, w.Body)
				}
			}
			if kept = heapBytes() - before; kept <= sessions*long/4 {
				break
			}
		}
		if kept > sessions*long/4 {
			t.Errorf("%s: %d sessions keep %d bytes", name, sessions, kept)
		}
	}
	runtime.KeepAlive(s)
}

// heapBytes is what is in use of the heap.
func heapBytes() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
