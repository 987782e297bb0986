package e2b_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend/backendtest"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/e2b"
)

// TestStandIns: what the daemon made for a client's sandbox is there for no client, by any route
// of the control plane, and by none of the data plane, its ports included, whatever they show.
func TestStandIns(t *testing.T) {
	h := newHouse(t)
	data := e2b.NewData(e2b.DataConfig{Sandboxes: h.life, Access: h.keys, Clients: h.book, Log: slog.New(slog.DiscardHandler)})
	const gone = "The sandbox was not found"
	answer := func(id, port string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		r.Header.Set("E2b-Sandbox-Id", id)
		r.Header.Set("E2b-Sandbox-Port", port)
		r.Header.Set("X-Access-Token", h.keys.Token(id))
		r.Header.Set("E2b-Traffic-Access-Token", h.keys.Traffic(id))
		w := httptest.NewRecorder()
		data.ServeHTTP(w, r)
		return w.Body.String()
	}
	routes := slices.DeleteFunc(e2b.Patterns(), func(p string) bool { return !strings.Contains(p, "/sandboxes/{id}") })
	if len(routes) < 10 {
		t.Fatalf("only %v name a sandbox", routes)
	}
	own := h.create("").SandboxID
	for _, what := range backendtest.StandsIn() {
		id := h.life.StandIn(what, h.annToken.ID)
		for _, route := range routes {
			h.refused(http.StatusNotFound, "there is no sandbox", h.ann, strings.ReplaceAll(route, "{id}", id), "{}")
		}
		for _, port := range []string{"49983", "49999", "8000"} {
			if got := answer(id, port); !strings.Contains(got, gone) {
				t.Errorf("port %s of a %s answers %q", port, what, got)
			}
			if got := answer(own, port); strings.Contains(got, gone) {
				t.Errorf("port %s of her own answers %q", port, got)
			}
		}
	}
	var list []any
	for _, route := range []string{"GET /v2/sandboxes", "GET /sandboxes"} {
		h.must(http.StatusOK, &list, h.ann, route, "")
		if len(list) != 1 { // her own
			t.Errorf("%s has %v", route, list)
		}
	}
	for _, route := range routes { // the control: her own is there for each, and one of them ends it
		own := h.create("").SandboxID
		if w := h.ask(h.ann, strings.ReplaceAll(route, "{id}", own), "{}"); strings.Contains(w.Body.String(), "there is no sandbox") {
			t.Errorf("%s hides her own: %s", route, w.Body)
		}
	}
}
