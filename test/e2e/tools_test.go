package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// tools serves an endpoint on loopback until the script's end, and configures the
// installation with tools: `order` is that endpoint and takes {"id": digits, "n": a number},
// `fails` and `flood` are programs, and so is `stays`, which leaves all that it can leave. The file called has what comes to the endpoint.
func tools(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: tools")
	}
	l := &hostLog{path: ts.MkAbs("called")}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = l.write("%s %s %s", r.Method, r.URL.Path, body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, `{"state": "sent"}`)
	}))
	ts.Defer(s.Close)
	user := ""
	if os.Geteuid() == 0 {
		user = ", user: nobody"
	}
	text := fmt.Sprintf(`tools:
  - name: order
    description: Where an order is.
    endpoint: %q
    answers: json
    arguments:
      type: object
      required: [id]
      additionalProperties: false
      properties: { id: { type: string, pattern: "^[0-9]+$" }, n: { type: integer } }
  - { name: fails, command: [/bin/sh, -c, "echo a secret of the host >&2; exit 3"]%s }
  - { name: flood, command: [/bin/sh, -c, "exec yes"]%s }
  - { name: stays, command: [/bin/sh, -c, "setsid sh -c 'sleep 98765 & exec sleep 98765' </dev/null >/dev/null 2>&1 & setsid sleep 98765"]%s }
  - { name: others, command: [/bin/sh, -c, "echo never"]%s }
`, s.URL+"/orders", user, user, user, user)
	ts.Check(os.WriteFile(stateFile(ts, "config.yaml"), []byte(text), 0o600))
}
