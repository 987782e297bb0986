package telemetry

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestAReceiversKeyGoesNowhereElse: where a receiver redirects to, nobody gets the spans and the headers, in which
// the key is. The receiver's words, and the URL, are not in the log: both may have a key in them.
func TestAReceiversKeyGoesNowhereElse(t *testing.T) {
	t.Parallel()
	const key = "a-key-of-the-receivers"
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	var asked atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1); r.Header.Get("X-Key") != key {
			t.Errorf("the control: the receiver gets %v", r.Header)
		}
		switch r.URL.Path {
		case "/redirects":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/says":
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 " + key + "\r\nContent-Length: 0\r\n\r\n"))
			_ = conn.Close()
		}
	}))
	t.Cleanup(receiver.Close)
	for _, url := range []string{receiver.URL + "/redirects", receiver.URL + "/says?key=" + key, down.URL + "/?key=" + key} {
		tel, log := newTelemetry(t, Traces{URL: url, Headers: map[string]string{"X-Key": key}})
		work(t.Context(), tel)
		must(t, tel.Close(t.Context()))
		if !strings.Contains(log.String(), "spans are lost") || strings.Contains(log.String(), key) {
			t.Errorf("%s: %s", url, log.String())
		}
	}
	if n := elsewhere.Load(); n != 0 || asked.Load() < 2 {
		t.Errorf("another got %d requests, the receiver %d", n, asked.Load())
	}
}
