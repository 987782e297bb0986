package mcp_test

import (
	"testing"
	"time"
)

// TestSandboxesHaveALease, and the server stays with them between calls for as long as the peer is
// there and has them; a connection that breaks is made again. Then nobody stays.
func TestSandboxesHaveALease(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := join(t, newServer(h, nil), nil)
	until := func(id string, n int) {
		t.Helper()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for h.stays(id) != n {
			select {
			case <-tick.C:
			case <-t.Context().Done():
				t.Fatalf("%d stay with %s, not %d", h.stays(id), id, n)
			}
		}
	}
	for range 2 {
		if _, failure := p.call("create_sandbox", nil); failure != "" {
			t.Fatal(failure)
		}
	}
	h.mu.Lock()
	for _, req := range h.asked {
		if req.Lifetime.LeaseSeconds != 1800 || req.Lifetime.IdleSeconds == 0 {
			t.Errorf("one is asked for with %+v", req.Lifetime)
		}
	}
	h.mu.Unlock()
	until("sb1", 1)
	until("sb2", 1)
	h.breakStays()
	until("sb1", 1)
	until("sb2", 1)
	if err := p.session.Close(); err != nil {
		t.Fatal(err)
	}
	until("sb1", 0)
	until("sb2", 0)
}
