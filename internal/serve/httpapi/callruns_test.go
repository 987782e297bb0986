package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
)

// TestARunOfCallsIsSomebodys: a token that makes a sandbox for a run in which the host has made
// calls alone gets neither the run nor what the log has of it. A run in which the host has a sandbox is
// the control.
func TestARunOfCallsIsSomebodys(t *testing.T) {
	t.Parallel()
	in, ctx := serve(t), t.Context()
	in.create(in.host, api.CreateSandbox{Run: "boxes"})
	const secret = "payroll-of-ann"
	refuses := api.Policy{Source: "/p.yaml", Document: []byte("defaults: {action: allow}\nrules: [{name: strict, action: deny, message: 'payroll-of-ann is not for code', condition: {field: code, operator: contains, value: payroll}}]\n")}
	if _, err := client.Call(ctx, in.host, api.Call{Code: "payroll()", Run: "calls", Policy: refuses}); client.StatusOf(err) != http.StatusForbidden {
		t.Fatalf("the host's call: %v", err)
	}
	bob, _ := in.as(token.Grant{Name: "bob"})
	if _, err := bob.CreateSandbox(ctx, api.CreateSandbox{Run: "boxes"}); client.StatusOf(err) != http.StatusConflict {
		t.Fatalf("the control: %v", err)
	}
	if _, err := bob.Refusals(ctx, client.RefusalFilter{Run: "calls"}); client.StatusOf(err) != http.StatusNotFound {
		t.Fatalf("before: %v", err)
	}
	if _, err := bob.CreateSandbox(ctx, api.CreateSandbox{Run: "calls"}); client.StatusOf(err) != http.StatusConflict {
		t.Errorf("a token takes a run of the host's calls: %v", err)
	}
	for name, ask := range map[string]func() (string, error){
		"refusals": func() (string, error) {
			told, err := bob.Refusals(ctx, client.RefusalFilter{Run: "calls"})
			text := ""
			for _, one := range told.Refusals {
				text += one.Reason + " " + one.Rule + "\n"
			}
			return text, err
		},
	} {
		text, err := ask()
		if strings.Contains(text, secret) {
			t.Errorf("%s tell a token of the host's call: %q", name, text)
		}
		if client.StatusOf(err) != http.StatusNotFound {
			t.Errorf("%s of the host's run: %v", name, err)
		}
	}
}
