package config

import (
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

// TestNoToolTellsASecretBeforeItsFirstUse: no tool's answer has the secret of any in it, also when
// the tool whose secret it is was never called: since the daemon's start, say. The control: once
// that tool was called, the same answer is not passed on.
func TestNoToolTellsASecretBeforeItsFirstUse(t *testing.T) {
	t.Parallel()
	const value = "hunter2/of+the house"
	for _, before := range []struct {
		what string
		use  func(t *testing.T, set *tool.Set, broker *secret.Broker)
	}{
		{"the tool was called", func(t *testing.T, set *tool.Set, _ *secret.Broker) {
			t.Helper()
			order, _ := set.Get("order")
			if _, err := order.Call(t.Context(), tool.Call{Arguments: "{}"}); err != nil {
				t.Fatal(err)
			}
		}},
		{"nothing was called", func(*testing.T, *tool.Set, *secret.Broker) {}},
		{"a run has had the secret", func(t *testing.T, _ *tool.Set, broker *secret.Broker) {
			t.Helper()
			if _, err := broker.Lease().Value(t.Context(), "orders", "127.0.0.1"); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/debug" {
				fmt.Fprintf(w, "ORDERS_KEY=%s", value)
			}
		}))
		t.Cleanup(server.Close)
		key := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(key, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := readTools(t, "secrets:\n  - { name: orders, hosts: [127.0.0.1], file: "+key+" }\ntools:\n"+
			"  - { name: order, endpoint: "+server.URL+"/o, secret: orders }\n  - { name: debug, endpoint: "+server.URL+"/debug }\n")
		if err != nil {
			t.Fatal(err)
		}
		declared, err := c.DeclaredSecrets(nil)
		if err != nil {
			t.Fatal(err)
		}
		broker := secret.NewBroker(declared, time.Now)
		set, err := c.ToolSet(broker, nil)
		if err != nil {
			t.Fatal(err)
		}
		before.use(t, set, broker)
		debug, found := set.Get("debug")
		if !found {
			t.Fatal("there is no such tool")
		}
		if said, err := debug.Call(t.Context(), tool.Call{Arguments: "{}"}); err == nil {
			t.Errorf("%s: another tool answers %s", before.what, said)
		}
	}
}

// TestNoToolIsCalledWithoutTheSecretsOfAll: where a tool's secret can't be had, nobody can see whether
// it is in an answer, so no tool is called. The control: once it can be had, a tool is called.
func TestNoToolIsCalledWithoutTheSecretsOfAll(t *testing.T) {
	t.Parallel()
	called := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called <- struct{}{} }))
	t.Cleanup(server.Close)
	key := filepath.Join(t.TempDir(), "key")
	document := "secrets:\n  - { name: orders, hosts: [127.0.0.1], file: " + key + " }\ntools:\n" +
		"  - { name: order, endpoint: " + server.URL + "/o, secret: orders }\n  - { name: debug, endpoint: " + server.URL + "/debug }\n"
	for _, there := range []bool{false, true} {
		if there {
			if err := os.WriteFile(key, []byte("hunter2/of+the house\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, err := readTools(t, document)
		if err != nil {
			t.Fatal(err)
		}
		declared, err := c.DeclaredSecrets(nil)
		if err != nil {
			t.Fatal(err)
		}
		set, err := c.ToolSet(secret.NewBroker(declared, time.Now), nil)
		if err != nil {
			t.Fatal(err)
		}
		debug, found := set.Get("debug")
		if !found {
			t.Fatal("there is no such tool")
		}
		if _, err = debug.Call(t.Context(), tool.Call{Arguments: "{}"}); (err == nil) != there || (len(called) > 0) != there {
			t.Errorf("with the secret %v: %v, called %d times", there, err, len(called))
		}
	}
}
