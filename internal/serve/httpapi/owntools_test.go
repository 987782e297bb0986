package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
)

const ownSecret = "0123456789abcdef0123456789abcdef"

// TestOwnTools: who is at the socket gives a sandbox tools of this host, which are asked with
// their secret; nobody else does.
func TestOwnTools(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	var asked []string
	answer := "42"
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Authorization")+" "+r.Header.Get("Cofferdam-Sandbox"))
		_, _ = w.Write([]byte(answer))
	}))
	defer endpoint.Close()
	good := api.SandboxTool{
		Name: "add", Description: "adds", Endpoint: endpoint.URL + "/add", Secret: ownSecret, Answers: "json", TimeoutMS: 5000,
		Arguments: json.RawMessage(`{"type":"object","required":["a"]}`),
	}
	if _, err := in.host.CreateSandbox(ctx, api.CreateSandbox{Tools: []api.SandboxTool{good}, Env: map[string]string{"A": "b"}}); err != nil {
		t.Fatal(err)
	}
	req := in.manager.Requests()[0]
	add, known := req.Tools.Get("add")
	if !known || req.Env["TOOL_PROXY_URL"] != "http://tools.cofferdam.internal" || req.Env["A"] != "b" {
		t.Fatalf("the manager was asked for %+v", req)
	}
	got, err := add.Call(ctx, tool.Call{Run: "r", Sandbox: "sb1", Arguments: `{"a":1}`})
	if err != nil || got != "42" || len(asked) != 1 || asked[0] != "Bearer "+ownSecret+" sb1" {
		t.Errorf("%q %v; it was asked with %q", got, err, asked)
	}
	answer = `{"it is": "` + ownSecret + `"}`
	if got, err := add.Call(ctx, tool.Call{Arguments: `{"a":1}`}); err == nil {
		t.Errorf("the secret got into a sandbox: %s", got)
	}

	for what, spoil := range map[string]func(*api.CreateSandbox){
		"no loopback address":   func(r *api.CreateSandbox) { r.Tools[0].Endpoint = "http://192.0.2.1:80/add" },
		"a name":                func(r *api.CreateSandbox) { r.Tools[0].Endpoint = "http://localhost:80/add" },
		"an unspecified one":    func(r *api.CreateSandbox) { r.Tools[0].Endpoint = "http://0.0.0.0:80/add" },
		"no port":               func(r *api.CreateSandbox) { r.Tools[0].Endpoint = "http://127.0.0.1/add" },
		"another scheme":        func(r *api.CreateSandbox) { r.Tools[0].Endpoint = "file:///etc/passwd" },
		"credentials in it":     func(r *api.CreateSandbox) { r.Tools[0].Endpoint = "http://a:b@127.0.0.1:80/add" },
		"a short secret":        func(r *api.CreateSandbox) { r.Tools[0].Secret = "short" },
		"a secret of two lines": func(r *api.CreateSandbox) { r.Tools[0].Secret = ownSecret + "\r\nX: y" },
		"a name that is none":   func(r *api.CreateSandbox) { r.Tools[0].Name = "../add" },
		"no schema":             func(r *api.CreateSandbox) { r.Tools[0].Arguments = json.RawMessage(`{"type":"pony"}`) },
		"another answer":        func(r *api.CreateSandbox) { r.Tools[0].Answers = "xml" },
		"a long wait":           func(r *api.CreateSandbox) { r.Tools[0].TimeoutMS = 1 << 62 },
		"a long description":    func(r *api.CreateSandbox) { r.Tools[0].Description = strings.Repeat("x", 5000) },
		"the same twice":        func(r *api.CreateSandbox) { r.Tools = append(r.Tools, r.Tools[0]) },
		"a plan":                func(r *api.CreateSandbox) { r.Plan = true },
		"too many": func(r *api.CreateSandbox) {
			for range 64 {
				r.Tools = append(r.Tools, r.Tools[0])
			}
		},
	} {
		body := api.CreateSandbox{Tools: []api.SandboxTool{good}}
		spoil(&body)
		if _, err := in.host.CreateSandbox(ctx, body); client.StatusOf(err) != http.StatusBadRequest {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := in.host.CreateOnce(ctx, "key", api.CreateSandbox{Tools: []api.SandboxTool{good}}); client.StatusOf(err) != http.StatusBadRequest {
		t.Errorf("with a key: %v", err)
	}
	for _, grant := range []token.Grant{{Name: "ann"}, {Name: "root", Admin: true}} {
		c, _ := in.as(grant)
		if _, err := c.CreateSandbox(ctx, api.CreateSandbox{Tools: []api.SandboxTool{good}}); client.StatusOf(err) != http.StatusForbidden {
			t.Errorf("the token %s: %v", grant.Name, err)
		}
	}
	if made := len(in.manager.Requests()); made != 1 {
		t.Errorf("%d sandboxes were asked for", made)
	}
}
