package egress_test

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/outbound"
)

// hearing is a name server that notes what the door had on record when it heard of a name.
type hearing struct {
	door *fakeDoor

	mu    sync.Mutex
	heard map[string]bool // whether it was on record
}

func (h *hearing) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	h.door.mu.Lock()
	known := slices.Contains(h.door.looked, host[:len(host)-1])
	h.door.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard[host] = known
	return nil, errors.New("no such host")
}

// TestANameIsOnRecordBeforeItIsLookedUp: a name server hears nothing that a sandbox's records do
// not have by then, and of no name that the door does not allow.
func TestANameIsOnRecordBeforeItIsLookedUp(t *testing.T) {
	for _, refused := range []string{"", "too many of them"} {
		d := &fakeDoor{allowed: hosts(), unresolving: refused}
		heard := &hearing{door: d, heard: map[string]bool{}}
		conn := to(t, uplinkTo(t, d, egress.Limits{}, outbound.NewDialer(nil, heard))(), "nowhere.example", 443)
		if _, err := io.WriteString(conn, firstHello(t, "nowhere.example")); err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(conn) // until it is ended
		heard.mu.Lock()
		known, asked := heard.heard["nowhere.example."]
		heard.mu.Unlock()
		if asked != (refused == "") || asked && !known {
			t.Errorf("refused %q: looked up %v, on record %v", refused, asked, known)
		}
	}
}
