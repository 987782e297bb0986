package egress_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestAnEarlyAnswerOfAHostArrivesWhole: one that answers before it has read the body, and reads that then.
func TestAnEarlyAnswerOfAHostArrivesWhole(t *testing.T) {
	half := strings.Repeat("answer", 20_000)
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex() // or net/http reads the body first
			_, _ = io.WriteString(w, half)
			_ = http.NewResponseController(w).Flush()
			if n, err := io.Copy(io.Discard, r.Body); err != nil || n != r.ContentLength {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, half)
		}), "api.example")
		c := e.client(t, http2)
		for i := range 60 {
			status, said := ask(t, c, http.MethodPost, "https://api.example/good/x", bytes.NewReader(make([]byte, 4<<10<<(i%8))))
			if status != http.StatusOK || said != half+half {
				t.Fatalf("round %d: %d, and %d bytes of %d", i, status, len(said), 2*len(half))
			}
		}
	})
}
