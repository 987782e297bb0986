package daemon

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	carried "github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// keyDoor gives each request a key that no other one had.
type keyDoor struct {
	door.Door
	keys []string
}

func (*keyDoor) Scans(context.Context, door.ScansAsk) (door.ScansAnswer, error) {
	return door.ScansAnswer{}, nil
}

func (*keyDoor) Credentials(context.Context, door.CredentialsAsk) (door.CredentialsAnswer, error) {
	how := exchange.Manner{Header: "Authorization", Format: "Bearer {secret}"}
	return door.CredentialsAnswer{Seek: true, Credentials: []exchange.Credential{{Secret: "one", Manner: how}}}, nil
}

func (d *keyDoor) Secrets(context.Context, door.SecretsAsk) (door.SecretsAnswer, error) {
	key := d.keys[0]
	d.keys = d.keys[1:]
	return door.SecretsAnswer{Values: map[string]string{"one": key}}, nil
}

func (*keyDoor) Lent(context.Context, door.LentAsk) (door.LentAnswer, error) {
	return door.LentAnswer{}, nil
}

// TestConnectionsOfASandboxKnowOneAnother: an answer on one connection has no secret that another
// one brought to the host since. The control: what is like it comes.
func TestConnectionsOfASandboxKnowOneAnother(t *testing.T) {
	const like = "like-the-key-number-2"
	all := scanned(&keyDoor{keys: []string{"the-key-of-number-1", "the-key-of-number-2"}})
	ask := func() (carried.Exchange, *http.Request) {
		e, err := all.Exchange(t.Context(), carried.Connection{Sandbox: "sb-1", Name: "api.example", Port: 443, TLS: true})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/v1", http.NoBody)
		if err := e.Outgoing(r); err != nil {
			t.Fatal(err)
		}
		return e, r
	}
	e, r := ask()
	in, out := io.Pipe()
	a := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: in, Request: r}
	if err := e.Incoming(a); err != nil {
		t.Fatal(err)
	}
	_, second := ask()
	written := make(chan error, 1)
	go func() {
		_, err := io.WriteString(out, second.Header.Get("Authorization")+" "+like)
		written <- err
		_ = out.Close()
	}()
	b, err := io.ReadAll(a.Body)
	if want := "Bearer " + strings.Repeat("x", len("the-key-of-number-2")) + " " + like; err != nil || string(b) != want || <-written != nil {
		t.Errorf("%q, %v", b, err)
	}
}
