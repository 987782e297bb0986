package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
)

// TestOwnToolsSecrets: what a sandbox's own tool answers has neither its secret nor that of another
// of the sandbox's tools in it, in whichever form. The control: what is like one comes.
func TestOwnToolsSecrets(t *testing.T) {
	t.Parallel()
	const secret, others, like = `abcdefgh<&>"/ijklmnopqrstuvwxyz0123456789`, `zyxwvuts<&>"/rqponmlkjihgfedcba9876543210`, `abcdefgh<&>"/ijklMNOpqrstuvwxyz0123456789`
	answer := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	t.Cleanup(s.Close)
	asked := func(name, secret string) api.SandboxTool {
		return api.SandboxTool{Name: name, Description: "d", Endpoint: s.URL + "/t", Secret: secret, Arguments: []byte(`{"type":"object"}`)}
	}
	set, _, err := ownTools(api.CreateSandbox{Tools: []api.SandboxTool{asked("echo", secret), asked("other", others)}}, caller{})
	if err != nil {
		t.Fatal(err)
	}
	one, _ := set.Get("echo")
	for name, form := range map[string]func(string) string{
		"raw":    func(s string) string { return s },
		"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"JSON": func(s string) string {
			b, _ := json.Marshal(map[string]string{"authorization": s})
			return string(b)
		},
		"percent": func(s string) string { return strings.ReplaceAll(s, "/", "%2F") },
	} {
		for said, passes := range map[string]bool{secret: false, others: false, like: true} {
			answer = form(said)
			if got, err := one.Call(t.Context(), tool.Call{Arguments: "{}"}); (err == nil) != passes {
				t.Errorf("%s of %q: %q, %v", name, said, got, err)
			}
		}
	}
	bad := asked("echo", secret)
	bad.Description = "its key is " + secret
	if _, _, err := ownTools(api.CreateSandbox{Tools: []api.SandboxTool{bad}}, caller{}); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a description with a secret: %v", err)
	}
}
