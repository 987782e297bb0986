package egress_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// TestDialsAreCounted: a host that closes after each answer is dialled again and again on one
// connection of the guest's. Each is counted on record; what comes too fast waits, and is
// refused in the end. The control is a host that keeps its connections.
func TestDialsAreCounted(t *testing.T) {
	host := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "close") {
			w.Header().Set("Connection", "close")
		}
	})
	e := endLimited(t, egress.Limits{Connects: 1, HelloTime: 200 * time.Millisecond}, judgedDocument, host, "api.example")
	for _, path := range []string{"/good/keep", "/good/close"} { // the control first: the other leaves no room for a while
		want := path == "/good/keep"
		c := e.client(t, false)
		before := e.at.reached()
		let := 0
		for range 20 {
			if status, _ := ask(t, c, http.MethodGet, "https://api.example"+path, nil); status == http.StatusOK {
				let++
			}
		}
		c.CloseIdleConnections()
		if made := e.at.reached() - before; (let == 20) != want || want && made != 1 || !want && (made < 2 || made > 15) {
			t.Errorf("%s: %d requests of 20 over %d connections", path, let, made)
		}
	}
	e.door.until(t, "both ends", func() bool { return len(e.door.ended) == len(e.door.begun) && len(e.door.begun) >= 2 })
	if e.door.dials != int64(e.at.reached()) {
		t.Errorf("%d dials on record of %d", e.door.dials, e.at.reached())
	}
}
