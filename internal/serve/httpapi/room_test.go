package httpapi_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// TestStalledBodiesHoldLittle: a token whose requests send much and then nothing is
// refused more, another is served, and when they are over it is served again.
func TestStalledBodiesHoldLittle(t *testing.T) {
	t.Parallel()
	in := serve(t)
	_, secret, err := in.book.Issue(t.Context(), token.Grant{Name: "mallory"})
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		status int
		err    error
	}
	const requests, each = 8, 10 << 20
	answers, reached, over := make(chan answer, requests), make(chan struct{}, requests), make(chan struct{})
	for range requests {
		body, writer := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, in.url+"/v1/sandboxes", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		go func() {
			_, _ = io.WriteString(writer, `{"task":"`)
			_, _ = writer.Write(bytes.Repeat([]byte("x"), each)) // and no end
			reached <- struct{}{}
			<-over
			_ = writer.CloseWithError(io.ErrUnexpectedEOF)
		}()
		go func() {
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				answers <- answer{err: err}
				return
			}
			res.Body.Close()
			answers <- answer{status: res.StatusCode}
		}()
	}
	refused := 0
	for range requests - backend.RoomEach/each { // the others hold what they may
		if a := <-answers; a.status == http.StatusTooManyRequests {
			refused++
		} else {
			t.Errorf("a body for which there is no room: %+v", a)
		}
	}
	if refused == 0 {
		t.Error("none was refused")
	}
	good, _ := in.as(token.Grant{Name: "ann"})
	in.create(good, api.CreateSandbox{})
	close(over)
	for range backend.RoomEach / each {
		<-answers
	}
	in.create(in.with(secret), api.CreateSandbox{})
}
