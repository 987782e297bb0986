package httpapi_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// TestARefusalDoesNotWaitForTheBody: a client that has sent nearly all of what is refused,
// and sends no more, hears of it all the same.
func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	t.Parallel()
	in := serve(t)
	_, secret, err := in.book.Issue(t.Context(), token.Grant{Name: "mallory"})
	if err != nil {
		t.Fatal(err)
	}
	body, writer := io.Pipe()
	go func() {
		_, _ = writer.Write(bytes.Repeat([]byte("x"), backend.RoomEach+100<<10)) // less than the server would read in vain
	}()
	defer writer.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, in.url+"/v1/sandboxes", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("it is told %s", res.Status)
	}
}
