package httpapi

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// reading tells when the reads of a body begin and end.
type reading struct {
	io.ReadCloser
	in chan<- int
}

func (r reading) Read(b []byte) (int, error) {
	r.in <- 1
	n, err := r.ReadCloser.Read(b)
	r.in <- -1
	return n, err
}

// TestAnAnswerBeforeTheBody: where the guest refuses a file early, its client hears
// it at once, and nobody reads the body any more: over HTTP/2 that would be the end of
// the daemon.
func TestAnAnswerBeforeTheBody(t *testing.T) {
	t.Parallel()
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads, left := make(chan int, 100), make(chan error, 1)
			server := httptest.NewUnstartedServer(backend.Hurried(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // as the daemon serves it
				r.Body = reading{r.Body, reads}
				paceBody(w, r)
				near, far := net.Pipe()
				go func() {
					guest := channel.NewConn(far)
					_, _, _ = guest.ReadFrame()
					_ = guest.WriteJSON(channel.FrameReply, channel.Reply{Code: channel.CodeNoSpace, Error: "the disk is full"})
				}()
				_, err := storeBody(channel.NewConn(near), r.Body)
				if !errors.Is(err, fault.ErrExhausted) {
					t.Errorf("the guest's refusal became %v", err)
				}
				left <- err
				w.WriteHeader(http.StatusTooManyRequests)
			})))
			server.Listener, server.Config.ConnContext = backend.Lingering(server.Listener), backend.LingerContext
			server.EnableHTTP2 = h2
			server.StartTLS()
			defer server.Close()
			body, more := io.Pipe()
			go func() { _, _ = io.Copy(more, strings.NewReader(strings.Repeat("a part", channel.MaxPayload))) }() // and no end
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			res, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusTooManyRequests || (res.ProtoMajor == 2) != h2 {
				t.Errorf("%s by %s", res.Status, res.Proto)
			}
			<-left
			more.Close()
			server.Close()
			close(reads)
			under := 0
			for one := range reads {
				under += one
			}
			if under != 0 {
				t.Errorf("%d reads go on after the handler", under)
			}
		})
	}
}
