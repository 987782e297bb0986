package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
)

// TestHandOver: only a daemon in the background that does nothing else leaves its
// place to another.
func TestHandOver(t *testing.T) {
	for name, c := range map[string]struct {
		query            string
		background, busy bool
		want             int
	}{
		"idle":             {query: "?handover=1", background: true, want: http.StatusAccepted},
		"busy":             {query: "?handover=1", background: true, busy: true, want: http.StatusConflict},
		"one that stays":   {query: "?handover=1", want: http.StatusConflict},
		"both at once":     {query: "?handover=1&force=1", background: true, want: http.StatusBadRequest},
		"an ordinary stop": {background: true, want: http.StatusAccepted},
	} {
		handed, stopped := 0, 0
		s := New(Config{
			Version: api.Version{Background: c.background},
			Stop:    func(bool) error { stopped++; return nil }, HandOver: func() { handed++ },
		})
		if c.busy {
			s.busy.Add(1)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/shutdown"+c.query, nil)
		w := httptest.NewRecorder()
		s.busy.Add(1) // as ServeHTTP does, behind which no caller could be put
		err := s.shutdown(w, r)
		got := w.Code
		if err != nil {
			got = statusOf(err)
		}
		if got != c.want || (handed+stopped == 1) != (c.want == http.StatusAccepted) || (c.query != "" && stopped > 0) {
			t.Errorf("%s: %d (%v), handed over %d times, stopped %d times", name, got, err, handed, stopped)
		}
	}
}

// TestWhoStaysKeepsNoDaemon: a client that is only there, as a sandbox's, is no work of the daemon;
// one that watches what its sandbox waits for is (the control).
func TestWhoStaysKeepsNoDaemon(t *testing.T) {
	for query, want := range map[string]int64{"?watch=1&stay=1": 0, "?watch=1": 1} {
		s := New(Config{})
		busy := int64(-1)
		s.mux = http.NewServeMux()
		s.mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) { busy = s.busy.Load() })
		s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/sandboxes/sb1/holds"+query, nil))
		if busy != want || s.busy.Load() != 0 {
			t.Errorf("%s: the daemon is busy with %d, then %d", query, busy, s.busy.Load())
		}
	}
}
