package e2b

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestAnEarlyAnswerOfAPortArrivesWhole: the server inside answers before it has read the body, and reads that then.
func TestAnEarlyAnswerOfAPortArrivesWhole(t *testing.T) {
	half := strings.Repeat("answer", 20_000)
	overBoth(t, func(t *testing.T, s *dataStage) {
		s.serves(3000, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex() // or net/http reads the body first
			_, _ = io.WriteString(w, half)
			_ = http.NewResponseController(w).Flush()
			if n, err := io.Copy(io.Discard, r.Body); err != nil || n != r.ContentLength {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, half)
		})
		for i := range 60 {
			body := make([]byte, 4<<10<<(i%8))
			r := s.port("3000", "/")
			r.Method, r.Body, r.ContentLength = http.MethodPost, io.NopCloser(bytes.NewReader(body)), int64(len(body))
			if status, said := s.do(r); status != http.StatusOK || said != half+half {
				t.Fatalf("round %d: %d, and %d bytes of %d", i, status, len(said), 2*len(half))
			}
		}
	})
}
