package httpapi_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
)

// TestPort: a connection is one to the server inside, for the sandbox's owner and the
// host; what a token may reach is decided apart from what the host's users may.
func TestPort(t *testing.T) {
	t.Parallel()
	in := serve(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "inside") }))
	defer server.Close()
	owner, _ := in.as(token.Grant{Name: "owner"})
	stranger, _ := in.as(token.Grant{Name: "stranger"})
	box := in.create(owner, api.CreateSandbox{})
	for _, b := range in.manager.All() {
		b.Ports = map[int]string{8000: server.Listener.Addr().String()}
	}
	for name, c := range map[string]*client.Client{"owner": owner, "host": in.host} {
		conn, err := c.Port(t.Context(), box.ID, 8000)
		if err != nil {
			t.Fatal(name, err)
		}
		_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(name, err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(body) != "inside" {
			t.Errorf("%s: %q %v", name, body, err)
		}
		_ = conn.Close()
	}
	for name, c := range map[string]struct {
		who    *client.Client
		port   int
		status int
	}{
		"what the policy does not publish, by a token":     {owner, 9000, http.StatusForbidden},
		"the same by the host's user: only nobody listens": {in.host, 9000, http.StatusServiceUnavailable},
		"somebody else's sandbox":                          {stranger, 8000, http.StatusNotFound},
		"no port":                                          {in.host, 70000, http.StatusBadRequest},
	} {
		conn, err := c.who.Port(t.Context(), box.ID, c.port)
		if err == nil {
			_ = conn.Close()
		}
		if client.StatusOf(err) != c.status {
			t.Errorf("%s: %v, want status %d", name, err, c.status)
		}
	}
}
