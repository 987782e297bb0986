package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
)

// TestCalls: code is run for the host's user and for tokens, each as it may.
func TestCalls(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	made, err := client.Call(ctx, in.host, api.Call{Code: "console.log('x'); ({a: 1 + 1})", Run: "mine"})
	if err != nil || string(made.Value) != `{"a":2}` || made.Stdout != "x\n" || made.Run != "mine" || made.Failure != nil || made.MemoryBytes == 0 {
		t.Errorf("%+v, %v", made, err)
	}
	if made, err = client.Call(ctx, in.host, api.Call{Code: "throw new Error('no')", MemoryMB: 8, TimeoutMS: 5000}); err != nil || made.Failure == nil || made.Failure.Kind != "thrown" || made.Value != nil {
		t.Errorf("%+v, %v", made, err)
	}
	refused := func(what string, c *client.Client, call api.Call, status int, says string) {
		t.Helper()
		if _, err := client.Call(ctx, c, call); client.StatusOf(err) != status || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want %d with %q", what, err, status, says)
		}
	}
	document := func(text string) api.Policy { return api.Policy{Source: "/p.yaml", Document: []byte(text)} }
	refused("a rule", in.host, api.Call{Code: "eval('1')", Policy: document("defaults: {action: allow}\nrules: [{name: strict, action: deny, condition: {field: code, operator: contains, value: eval}}]\n")}, http.StatusForbidden, "rule strict denies it")
	refused("another wall", in.host, api.Call{Code: "1", Policy: document("isolation: hardware\n")}, http.StatusForbidden, "isolation: wasm")
	refused("a language", in.host, api.Call{Code: "1", Language: "cobol"}, http.StatusBadRequest, "cobol")
	refused("no time", in.host, api.Call{Code: "1", TimeoutMS: -1}, http.StatusBadRequest, "timeout_ms")
	refused("much memory", in.host, api.Call{Code: "1", MemoryMB: 1 << 40}, http.StatusBadRequest, "memory_mb")
	for name, text := range map[string]string{"default": "packages: {default: deny}\n", "calls": "isolation: wasm\n"} {
		if _, err := in.host.PutPolicy(ctx, name, api.PutPolicy{Document: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	c, _ := in.as(token.Grant{Name: "ann", Policies: []string{"calls"}})
	refused("a token's default policy", c, api.Call{Code: "1"}, http.StatusForbidden, "isolation: wasm")
	refused("a token's run", c, api.Call{Code: "1", Run: "mine", Policy: api.Policy{Name: "calls"}}, http.StatusForbidden, "run of its own")
	refused("a token's document", c, api.Call{Code: "1", Policy: document("isolation: wasm\n")}, http.StatusForbidden, "brings no policy of its own")
	if made, err = client.Call(ctx, c, api.Call{Code: "40 + 2", Policy: api.Policy{Name: "calls"}}); err != nil || string(made.Value) != "42" {
		t.Errorf("a token's call: %+v, %v", made, err)
	}
}
