package credentials_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/credentials"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// renewingDoor gives api.example the newest value, and tells of all others.
type renewingDoor struct {
	door.Door
	mu     sync.Mutex // guards it
	values []string
}

func (d *renewingDoor) Credentials(context.Context, door.CredentialsAsk) (door.CredentialsAnswer, error) {
	return door.CredentialsAnswer{
		Placeholders: map[string]string{"one": fake}, Seek: true,
		Credentials: []exchange.Credential{{Secret: "one", Placeholder: fake, Manner: exchange.Manner{Header: "Authorization", Format: "Bearer {secret}"}}},
	}, nil
}

func (d *renewingDoor) Secrets(context.Context, door.SecretsAsk) (door.SecretsAnswer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return door.SecretsAnswer{Values: map[string]string{"one": d.values[len(d.values)-1]}, Others: map[string][]string{"one": d.values}}, nil
}

// Lent implements door.Door.
func (d *renewingDoor) Lent(context.Context, door.LentAsk) (door.LentAnswer, error) {
	return door.LentAnswer{}, nil
}

func (d *renewingDoor) renew(value string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.values = append(d.values, value)
}

// TestAStreamOfBeforeARenewal has none of the value that another connection of its sandbox brought
// to the host meanwhile, over each version of HTTP. The control: a text that is like it comes.
func TestAStreamOfBeforeARenewal(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		for _, sent := range []string{"second-secret-value-00002", "second-public-value-00002"} {
			t.Run(fmt.Sprintf("HTTP/2 %t, %s", http2, sent), func(t *testing.T) {
				t.Parallel() // each waits as long as a secret may take to end
				proceed := make(chan struct{})
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/events" {
						return
					}
					_, _ = io.WriteString(w, "data: it begins\n\n")
					_ = http.NewResponseController(w).Flush()
					<-proceed
					_, _ = io.WriteString(w, "data: "+sent+"\n\n")
				}))
				server.EnableHTTP2 = http2
				server.StartTLS()
				d := &renewingDoor{values: []string{"first-secret-value-000001"}}
				exchanges := credentials.New(d)
				ask := func(path string) *http.Response {
					e, err := exchanges.Exchange(t.Context(), requests.Connection{Sandbox: "sb1", Name: "api.example", Port: 443, TLS: true})
					if err != nil {
						t.Fatal(err)
					}
					r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
					if err != nil {
						t.Fatal(err)
					}
					if err := e.Outgoing(r); err != nil {
						t.Fatal(err)
					}
					a, err := server.Client().Transport.RoundTrip(r)
					if err != nil {
						t.Fatal(err)
					}
					if err := e.Incoming(a); err != nil {
						t.Fatal(err)
					}
					return a
				}
				stream := ask("/events")
				begun := make([]byte, len("data: it begins\n\n"))
				if _, err := io.ReadFull(stream.Body, begun); err != nil {
					t.Fatal(err)
				}
				d.renew("second-secret-value-00002")
				_ = ask("/").Body.Close()
				close(proceed)
				b, err := io.ReadAll(stream.Body)
				_ = stream.Body.Close()
				server.Close()
				want := strings.ReplaceAll("data: "+sent+"\n\n", "second-secret-value-00002", strings.Repeat("x", len(sent)))
				if err != nil || string(b) != want || (stream.ProtoMajor == 2) != http2 {
					t.Errorf("HTTP/2 %t, a host that sends %s: %q, %v", http2, sent, b, err)
				}
			})
		}
	}
}
