package egress_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// TestAStreamThatNobodyReadsEnds, although another of its connection is alive. That one goes on.
func TestAStreamThatNobodyReadsEnds(t *testing.T) {
	ended := make(chan struct{})
	e := endLimited(t, egress.Limits{Idle: 300 * time.Millisecond}, judgedDocument, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/unread") {
			defer close(ended)
			for much := make([]byte, 64<<10); ; {
				if _, err := w.Write(much); err != nil {
					return
				}
			}
		}
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_, _ = io.WriteString(w, ".")
				_ = http.NewResponseController(w).Flush()
			case <-ended:
				_, _ = io.WriteString(w, "over")
				return
			case <-r.Context().Done():
				return
			}
		}
	}), "api.example")
	c := e.client(t, true)
	live, err := c.Get("https://api.example/good/live")
	if err != nil {
		t.Fatal(err)
	}
	defer live.Body.Close()
	unread, err := c.Get("https://api.example/good/unread")
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Body.Close()
	if live.ProtoMajor != 2 {
		t.Errorf("INCONCLUSIVE: it is over %s", live.Proto)
	}
	if said, err := io.ReadAll(live.Body); err != nil || !strings.HasSuffix(string(said), "over") {
		t.Errorf("the stream beside the one that ended: %.100q %v", said, err)
	}
}
