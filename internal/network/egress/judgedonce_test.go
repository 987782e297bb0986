package egress_test

import (
	"fmt"
	"net/http"
	"testing"
)

// TestARefusedHostIsJudgedOnce for the first request: where TLS is ended, it was before the client's handshake, and what that
// led to is on record.
func TestARefusedHostIsJudgedOnce(t *testing.T) {
	t.Parallel()
	for _, h2 := range []bool{false, true} {
		e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }), "api.example")
		e.door.mu.Lock()
		e.door.denied = true
		e.door.mu.Unlock()
		status, _ := ask(t, e.client(t, h2), "GET", "https://api.example/good/a", nil)
		e.door.mu.Lock()
		if status != http.StatusForbidden || e.door.denials != 1 {
			t.Errorf("HTTP/2 %t: answered is %d, and it was judged %d times", h2, status, e.door.denials)
		}
		e.door.mu.Unlock()
	}
}
