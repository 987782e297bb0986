package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
)

// TestEndpointsGetTheirSecret: in the header that the secret's declaration sets, read anew
// from its source; an answer that has it, in whatever form, goes no further.
func TestEndpointsGetTheirSecret(t *testing.T) {
	t.Parallel()
	const value = "hunter2/of+the house"
	var got http.Header
	answer := "fine"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call := func(how string) (string, error) {
		c, err := readTools(t, "secrets:\n  - { name: orders, hosts: [127.0.0.1], file: "+key+how+" }\ntools:\n  - { name: order, endpoint: "+server.URL+"/o, secret: orders }\n")
		if err != nil {
			t.Fatal(err)
		}
		set, err := toolSet(t, c)
		if err != nil {
			t.Fatal(err)
		}
		one, _ := set.Get("order")
		return one.Call(t.Context(), tool.Call{Arguments: "{}"})
	}
	for how, want := range map[string][2]string{
		"":                                      {"Authorization", "Bearer " + value},
		", where: [query]":                      {"Authorization", "Bearer " + value},
		", header: X-Key":                       {"X-Key", value},
		", header: Authorization, user: ann":    {"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:"+value))},
		", header: X-Key, format: 'k={secret}'": {"X-Key", "k=" + value},
	} {
		if said, err := call(how); err != nil || said != `"fine"` || got.Get(want[0]) != want[1] {
			t.Errorf("%s: %s, %v, %v", how, said, err, got)
		}
	}
	for what, text := range map[string]string{
		"itself": "you said Bearer " + value, "base64": base64.StdEncoding.EncodeToString([]byte("x" + value)), "escaped": url.QueryEscape(value), "JSON": `{"a":"hunter2\/of+the house"}`,
	} {
		answer = text
		said, err := call("")
		if f, ok := errors.AsType[*tool.Failure](err); !ok || said != "" || !strings.Contains(f.Sentence, "is not passed on") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %q, %v", what, said, err)
		}
	}
	answer, got = "fine", nil
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if said, err := call(""); err == nil || said != "" || got != nil {
		t.Errorf("without its secret: %s, %v, %v", said, err, got)
	}
}

// TestASecretThatIsRenewedDuringACall: what another call brings to the endpoint meanwhile does
// not come by the one that is under way. The control: what is like it comes.
func TestASecretThatIsRenewedDuringACall(t *testing.T) {
	t.Parallel()
	const value, renewed = "hunter2/of+the house", "hunter3/of+the house"
	for said, passes := range map[string]bool{renewed: false, value: false, "hunter4/of+the house": true} {
		key := filepath.Join(t.TempDir(), "key")
		write := func(value string) {
			if err := os.WriteFile(key, []byte(value+"\n"), 0o600); err != nil {
				t.Error(err)
			}
		}
		write(value)
		var call func() (string, error)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "Bearer "+renewed {
				return
			}
			write(renewed)
			_, _ = call()
			fmt.Fprintf(w, "%q", said)
		}))
		t.Cleanup(server.Close)
		c, err := readTools(t, "secrets:\n  - { name: orders, hosts: [127.0.0.1], file: "+key+", keep: 1ns }\ntools:\n  - { name: order, endpoint: "+server.URL+"/o, secret: orders }\n")
		if err != nil {
			t.Fatal(err)
		}
		set, err := toolSet(t, c)
		if err != nil {
			t.Fatal(err)
		}
		one, _ := set.Get("order")
		call = func() (string, error) { return one.Call(t.Context(), tool.Call{Arguments: "{}"}) }
		if got, err := call(); passes != (err == nil) || !passes && got != "" {
			t.Errorf("%s: %q, %v", said, got, err)
		}
	}
}

// TestSecretsOfToolsThatCanNotBe: undeclared, for another host, in the clear, or a command's.
func TestSecretsOfToolsThatCanNotBe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`endpoint: "https://orders.example/o", secret: other`:    "declares no secret",
		`endpoint: "https://evil.example/o", secret: orders`:     "is not for evil.example",
		`endpoint: "http://orders.example/o", secret: orders`:    "in the clear",
		"command: [/bin/true]" + asNobody() + ", secret: orders": "an endpoint's",
		`endpoint: "https://orders.example/o", secret: key`:      "signs requests, and calls of tools are not signed",
		`endpoint: "https://orders.example/o", secret: orders`:   "",
	} {
		_, err := readTools(t, "secrets: [ { name: orders, hosts: [orders.example], environment: ORDERS }, { name: key, hosts: [orders.example], environment: KEY, aws: { access_key_id: AKIA0 } } ]\ntools: [ { name: a, "+text+" } ]\n")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
