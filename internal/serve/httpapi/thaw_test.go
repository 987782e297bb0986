package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// unhurried is for how long a request is watched that must not be answered yet.
const unhurried = 50 * time.Millisecond

// thawsLong is longer than an answer takes that waits for nothing, and shorter than a wait for a thaw.
const thawsLong = 15 * time.Second

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
				select {
				case <-answered:
				case <-time.After(thawsLong):
					t.Error("it waits for the thaw")
				}
				return
			}
			select {
			case got := <-answered:
				t.Fatalf("it is answered %s before the sandbox has thawed", got)
			case <-time.After(unhurried):
			}
			close(wakes)
			select {
			case <-answered:
			case <-time.After(thawsLong):
				t.Error("it is not answered though the sandbox has thawed")
			}
		})
	}
}

// TestAWaitForAThawEndsWithItsClient, whatever else the request brings: what a client that has gone had asked for is not held.
func TestAWaitForAThawEndsWithItsClient(t *testing.T) {
	t.Parallel()
	for _, route := range []string{"POST /v1/sandboxes/{id}/commands", "POST /v1/sandboxes/{id}/fork", "POST /v1/sandboxes/{id}/snapshots", "POST /v1/sandboxes/{id}/files/move", "GET /v1/sandboxes/{id}/files"} {
		t.Run(route, func(t *testing.T) {
			t.Parallel()
			in := serve(t)
			_, secret, err := in.book.Issue(t.Context(), token.Grant{Name: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			id := in.create(in.with(secret), api.CreateSandbox{}).ID
			box, err := in.manager.Box(id)
			if err != nil {
				t.Fatal(err)
			}
			box.Thaws(t.Context(), t.TempDir(), nil) // and never does
			method, path, _ := strings.Cut(strings.NewReplacer("{id}", id).Replace(route), " ")
			ctx, leave := context.WithCancel(t.Context())
			began, over := make(chan struct{}), make(chan struct{})
			gone := make(chan struct{})
			server := httptest.NewServer(backend.Hurried(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(over)
				close(began)
				in.handler.ServeHTTP(w, r)
			})))
			t.Cleanup(server.Close)
			go func() {
				defer close(gone)
				r, err := http.NewRequestWithContext(ctx, method, server.URL+path+"?path=/tmp/a", strings.NewReader(bodiesOfRoutes[route]))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("X-Api-Key", secret)
				r.Header.Set("Content-Type", "application/json")
				if resp, err := http.DefaultClient.Do(r); err == nil {
					t.Errorf("it is answered %s", resp.Status)
					_ = resp.Body.Close()
				}
			}()
			<-began
			select {
			case <-over:
				t.Fatal("INCONCLUSIVE: it does not wait")
			case <-time.After(unhurried):
			}
			leave()
			<-gone
			select {
			case <-over:
			case <-time.After(thawsLong):
				t.Error("it waits on for a client that has gone")
			}
		})
	}
}
