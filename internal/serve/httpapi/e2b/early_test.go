package e2b

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestAnEarlyAnswerOfAPortArrivesWhole: the server inside answers before it has read the body, and reads that then; the client sends the
// rest of it only when it has some of the answer, so that whoever waits for the one before the other waits for ever.
func TestAnEarlyAnswerOfAPortArrivesWhole(t *testing.T) {
	const half = 100_000
	answer := strings.Repeat("a", half)
	overBoth(t, func(t *testing.T, s *dataStage) {
		s.serves(3000, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex() // or net/http reads the body first
			_, _ = io.WriteString(w, answer)
			_ = http.NewResponseController(w).Flush()
			if n, err := io.Copy(io.Discard, r.Body); err != nil || n != 2*half {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, answer)
		})
		for _, length := range []int64{2 * half, -1} {
			ctx, late := context.WithTimeout(t.Context(), 10*time.Second)
			defer late()
			body, sends := io.Pipe()
			defer sends.Close() // else the server waits for the rest when the test has failed
			r := s.port("3000", "/").WithContext(ctx)
			r.Method, r.Body, r.ContentLength = http.MethodPost, body, length
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				_, _ = sends.Write(make([]byte, half)) // the transport closes the other end when it gives up
			}()
			res, err := s.server.Client().Do(r)
			if err != nil {
				t.Fatalf("length %d: %v", length, err)
			}
			defer res.Body.Close()
			first, err := io.ReadAll(io.LimitReader(res.Body, half))
			if err != nil {
				t.Fatal(err)
			}
			<-sent // the answer may be here before the first half was sent, and that would then be left out
			if _, err := sends.Write(make([]byte, half)); err != nil {
				t.Fatal(err)
			}
			_ = sends.Close()
			rest, err := io.ReadAll(res.Body)
			if res.StatusCode != http.StatusOK || string(first) != answer || string(rest) != answer || err != nil {
				t.Errorf("length %d: %d, and %d and %d bytes, %v", length, res.StatusCode, len(first), len(rest), err)
			}
		}
	})
}
