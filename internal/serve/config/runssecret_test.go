package config

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
)

// TestNoToolTellsARunsSecret: a run has used a secret that its policy names at a host, where it had the host keep it
// (its header, in a note). A tool of the configuration that asks the same service does not bring it in. The controls:
// what is like it comes, and if another tool has the secret as its own, it is found.
func TestNoToolTellsARunsSecret(t *testing.T) {
	t.Parallel()
	const value = "hunter2/of+the house"
	for _, c := range []struct {
		what, other, answer string
		passes              bool
	}{
		{"the run's secret", "", value, false},
		{"in base64", "", base64.StdEncoding.EncodeToString([]byte("x" + value)), false},
		{"the control: a tool's own", ", secret: model", value, false},
		{"the control: what is like it", "", "hunter3/of+the house", true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/notes" {
				fmt.Fprintf(w, "note 1: %s", c.answer)
			}
		}))
		t.Cleanup(server.Close)
		key := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(key, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := readTools(t, "secrets:\n  - { name: model, hosts: [127.0.0.1], file: "+key+" }\ntools:\n"+
			"  - { name: notes, endpoint: "+server.URL+"/notes }\n  - { name: other, endpoint: "+server.URL+"/o"+c.other+" }\n")
		if err != nil {
			t.Fatal(err)
		}
		declared, err := config.DeclaredSecrets(nil)
		if err != nil {
			t.Fatal(err)
		}
		broker := secret.NewBroker(declared, time.Now)
		set, err := config.ToolSet(broker, nil)
		if err != nil {
			t.Fatal(err)
		}
		run := broker.Lease()
		t.Cleanup(run.End)
		if _, err := run.Value(t.Context(), "model", "127.0.0.1"); err != nil { // the host has it from now on
			t.Fatal(err)
		}
		notes, _ := set.Get("notes")
		if said, err := notes.Call(t.Context(), tool.Call{Arguments: "{}"}); (err == nil) != c.passes {
			t.Errorf("%s: the tool answers %s, %v", c.what, said, err)
		}
	}
}
