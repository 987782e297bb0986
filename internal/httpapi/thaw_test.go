package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/httpapi"
	"github.com/cofferdam-dev/cofferdam/internal/token"
)

// unhurried is for how long a request is watched that must not be answered yet.
const unhurried = 50 * time.Millisecond

// TestWorkInASandboxWaitsUntilItHasThawed: whoever has answered what a sandbox waits for, and asks for something in it
// next, is not refused because it is still on its way back from disk. The control is every other route that names a
// sandbox: it tells of one that thaws, or does something to it, and is answered at once.
func TestWorkInASandboxWaitsUntilItHasThawed(t *testing.T) {
	t.Parallel()
	in := serve(t)
	waits := []string{
		"POST /v1/sandboxes/{id}/commands", "POST /v1/sandboxes/{id}/commands/{cmd}/signal", "GET /v1/sandboxes/{id}/ports/{port}",
		"GET /v1/sandboxes/{id}/files", "PUT /v1/sandboxes/{id}/files", "DELETE /v1/sandboxes/{id}/files", "GET /v1/sandboxes/{id}/files/stat",
		"GET /v1/sandboxes/{id}/files/list", "POST /v1/sandboxes/{id}/files/mkdir", "POST /v1/sandboxes/{id}/files/move",
		"POST /v1/sandboxes/{id}/fork", "POST /v1/sandboxes/{id}/snapshots",
	}
	_, secret, err := in.book.Issue(t.Context(), token.Grant{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range ofSandboxes(t) {
		t.Run(route, func(t *testing.T) {
			t.Parallel()
			id := in.create(in.with(secret), api.CreateSandbox{}).ID
			box, err := in.manager.Box(id)
			if err != nil {
				t.Fatal(err)
			}
			wakes := box.Thaws(t.Context(), t.TempDir(), nil)
			method, path, _ := strings.Cut(strings.NewReplacer("{id}", id, "{cmd}", "c1", "{port}", "80").Replace(route), " ")
			r, err := http.NewRequestWithContext(t.Context(), method, in.url+path+"?path=/tmp/a", strings.NewReader(bodiesOfRoutes[route]))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Api-Key", secret)
			r.Header.Set("Content-Type", "application/json")
			if strings.Contains(route, "/ports/") {
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", httpapi.PortProtocol)
			}
			answered := make(chan string, 1)
			go func() {
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					answered <- err.Error()
					return
				}
				_ = resp.Body.Close()
				answered <- resp.Status
			}()
			if !slices.Contains(waits, route) {
				<-answered
				return
			}
			select {
			case got := <-answered:
				t.Fatalf("it is answered %s before the sandbox has thawed", got)
			case <-time.After(unhurried):
			}
			close(wakes)
			<-answered
		})
	}
}
