package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend/backendtest"
)

// ofSandboxes are all routes of the description that name a sandbox: all that there are, as
// TestEveryRouteIsDescribed finds.
func ofSandboxes(t *testing.T) []string {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]yaml.Node `yaml:"paths"`
	}
	if err := yaml.Unmarshal(api.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	var routes []string
	for path, operations := range doc.Paths {
		for method := range operations {
			if method != "parameters" && strings.HasPrefix(path, "/v1/sandboxes/{id}") {
				routes = append(routes, strings.ToUpper(method)+" "+path)
			}
		}
	}
	if len(routes) < 20 {
		t.Fatalf("only %v name a sandbox", routes)
	}
	return routes
}

// bodiesOfRoutes are bodies that routes of ofSandboxes read.
var bodiesOfRoutes = map[string]string{
	"POST /v1/sandboxes/{id}/commands": `{"argv":["true"]}`, "POST /v1/sandboxes/{id}/commands/{cmd}/signal": `{"name":"TERM"}`,
	"PUT /v1/sandboxes/{id}/files": "a", "POST /v1/sandboxes/{id}/files/mkdir": `{"path":"/tmp/a"}`,
	"POST /v1/sandboxes/{id}/files/move": `{"path":"/tmp/a","to":"/tmp/b"}`, "POST /v1/sandboxes/{id}/fork": "{}",
	"POST /v1/sandboxes/{id}/snapshots": "{}", "PUT /v1/sandboxes/{id}/lifetime": "{}",
}

// TestStandIns: what the daemon made for a token's sandbox is there for no token, admin tokens
// included, by any route: others get what is built there. The host sees it.
func TestStandIns(t *testing.T) {
	t.Parallel()
	in := serve(t)
	tok, secret, err := in.book.Issue(t.Context(), token.Grant{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	_, admin, err := in.book.Issue(t.Context(), token.Grant{Name: "root", Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	answer := func(secret, route, id string) string {
		method, path, _ := strings.Cut(strings.NewReplacer("{id}", id, "{cmd}", "c1", "{port}", "80").Replace(route), " ")
		r, err := http.NewRequestWithContext(t.Context(), method, in.url+path+"?path=/tmp/a", strings.NewReader(bodiesOfRoutes[route]))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", secret)
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(route, err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(route, err)
		}
		return resp.Status + strings.ReplaceAll(string(text), id, "ID")
	}
	told := 0 // routes that tell one that is there from one that is not
	ann := in.with(secret)
	for _, route := range ofSandboxes(t) {
		own := in.create(ann, api.CreateSandbox{}).ID
		missing := answer(secret, route, "sb-nobody")
		if answer(secret, route, own) != missing {
			told++
		}
		for _, what := range backendtest.StandsIn() {
			id := in.manager.StandIn(what, tok.ID)
			for who, secret := range map[string]string{"its owner's token": secret, "an admin token": admin} {
				if got := answer(secret, route, id); got != missing {
					t.Errorf("%s of a %s answers %s: %s", route, what, who, got)
				}
			}
			if box, err := in.host.Sandbox(t.Context(), id); err != nil || box.ID != id {
				t.Errorf("the host does not see a %s: %+v, %v", what, box, err)
			}
		}
	}
	if told < 15 {
		t.Errorf("only %d routes answer for her own sandbox", told)
	}
	for who, c := range map[string]*client.Client{"its owner's token": ann, "an admin token": in.with(admin)} {
		all, err := c.Sandboxes(t.Context())
		if err != nil || len(all) == 0 {
			t.Fatal(all, err)
		}
		for _, one := range all {
			if box, err := in.manager.Get(one.ID); err != nil || box.Info().StandsIn() != "" {
				t.Errorf("%s has in its list: %+v, %v", who, one, err)
			}
		}
	}
}

// TestEventsOfStandIns are told to no token: they have none.
func TestEventsOfStandIns(t *testing.T) {
	t.Parallel()
	for _, what := range backendtest.StandsIn() {
		info := sandbox.Info{Rehearsal: what == "rehearsal", Workshop: what == "workshop", Proof: what == "proof", Owner: sandbox.Owner{Token: "tk"}}
		if what == "build" {
			info.Labels = map[string]string{"cofferdam.build": "b"}
		}
		text, err := json.Marshal(info) // as the journal has it
		if err != nil {
			t.Fatal(err)
		}
		var kept sandbox.Info
		if err := json.Unmarshal(text, &kept); err != nil {
			t.Fatal(err)
		}
		if kept.StandsIn() != what || kept.ShownTo() != "" {
			t.Errorf("a %s is a %q, and is shown to %q", what, kept.StandsIn(), kept.ShownTo())
		}
	}
	if own := (sandbox.Info{Owner: sandbox.Owner{Token: "tk"}, Labels: map[string]string{"a": "b"}}); own.ShownTo() != "tk" || own.StandsIn() != "" {
		t.Errorf("a token's own is shown to %q", own.ShownTo())
	}
}
