package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

const injecting = `
network_allowlist: [api.example, "git.example:8443"]
credentials:
  mode: just_in_time
  inject:
    - { host: API.example, header: authorization, secret: one, env: API_KEY }
    - { host: "git.example:8443", secret: two }
    - { host: api.example, secret: three, env: [OTHER_KEY, SAME_KEY] }
    - { host: elsewhere.example, header: X, secret: one, env: API_KEY }
`

func TestCredentials(t *testing.T) {
	p := parsed(t, injecting)
	want := []policy.Credential{
		{Host: "api.example", Secret: "one", Header: "Authorization", Env: []string{"API_KEY"}},
		{Host: "git.example", Port: 8443, Secret: "two"},
		{Host: "api.example", Secret: "three", Env: []string{"OTHER_KEY", "SAME_KEY"}},
		{Host: "elsewhere.example", Secret: "one", Header: "X", Env: []string{"API_KEY"}},
	}
	if diff := cmp.Diff(want, policy.Credentials(p)); diff != "" {
		t.Error(diff)
	}
	for at, n := range map[string]int{"api.example 443": 2, "api.example 80": 2, "git.example 8443": 1, "git.example 443": 0, "sub.api.example 443": 0, "API.example 443": 0} {
		host, port := "", 0
		if _, err := fmt.Sscan(at, &host, &port); err != nil {
			t.Fatal(err)
		}
		if got := policy.CredentialsAt(p, host, port); len(got) != n {
			t.Errorf("%s: %v", at, got)
		}
	}
	if notes := strings.Join(p.Notes(), "\n"); !strings.Contains(notes, "elsewhere.example is not on network_allowlist") || strings.Contains(notes, "git.example is not") {
		t.Errorf("%q", notes)
	}
}

// TestCredentialsOfAnOperation: fetches and pushes can have a secret each, and a policy that
// narrows does not turn one into the other.
func TestCredentialsOfAnOperation(t *testing.T) {
	p := parsed(t, "network_allowlist: [git.example]\ncredentials: { inject: [ { host: git.example, secret: read, git: fetch }, { host: git.example, secret: write, git: push } ] }\n")
	all := policy.CredentialsAt(p, "git.example", 443)
	if len(all) != 2 || !all[0].For(gitwire.Fetch) || all[0].For(gitwire.Push) || all[0].For("") || all[1].For(gitwire.Fetch) || !all[1].For(gitwire.Push) {
		t.Errorf("%+v", all)
	}
	narrowed, _ := p.NarrowedBy(parsed(t, "network_allowlist: [git.example]\ncredentials: { inject: [ { host: git.example, secret: read }, { host: git.example, secret: write, git: push } ] }\n"))
	if all := policy.Credentials(narrowed); len(all) != 1 || all[0].Secret != "write" {
		t.Errorf("narrowed: %+v", all)
	}
	if _, err := policy.Parse("p", []byte("credentials: { inject: [ { host: git.example, secret: read, git: clone } ] }\n")); err == nil || !strings.Contains(err.Error(), "git") {
		t.Error(err)
	}
}

// TestANarrowerPolicyTakesCredentialsAway, and gives none.
func TestANarrowerPolicyTakesCredentialsAway(t *testing.T) {
	narrower := parsed(t, `
network_allowlist: [api.example]
credentials: { inject: [ { host: api.example, header: Authorization, secret: one }, { host: api.example, secret: more } ] }
`)
	narrowed, ok := parsed(t, injecting).NarrowedBy(narrower)
	if !ok {
		t.Fatal("it can't be narrowed")
	}
	want := []policy.Credential{{Host: "api.example", Secret: "one", Header: "Authorization", Env: []string{"API_KEY"}}}
	if diff := cmp.Diff(want, policy.Credentials(narrowed)); diff != "" {
		t.Error(diff)
	}
}

// TestAHostWithASecretIsReadOnItsOtherPorts: TLS is ended there too, since the same service may
// show the secret there; but for a port that passes unread. The control is a host without one.
func TestAHostWithASecretIsReadOnItsOtherPorts(t *testing.T) {
	r := parsed(t, `
network_allowlist: ["git.example:8443", "git.example:9443", { host: git.example, port: 5432, tcp: true }, "plain.example:9443"]
credentials:
  mode: just_in_time
  inject:
    - { host: "git.example:8443", secret: two }
`).Requests()
	for at, want := range map[int]bool{8443: true, 9443: true, 5432: false} {
		if is := r.Judged("git.example", at); is != want {
			t.Errorf("port %d is judged: %v", at, is)
		}
	}
	if r.Judged("plain.example", 9443) {
		t.Error("a host without a secret is judged")
	}
}
