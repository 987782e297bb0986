package policy_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestANarrowingOpensNoSecretsHost: whichever way a narrower policy has a secret's entry differ, the secret
// is still looked for, the host takes no other credential on any of its ports, and its requests are read.
// Less is given. The controls: the policy by itself, and one that has no secret.
func TestANarrowingOpensNoSecretsHost(t *testing.T) {
	const allowed = "network_allowlist: [ { host: api.example, port: 443 }, { host: api.example, port: 8443 } ]\n"
	inject := func(entry string) string { return allowed + "credentials: { inject: [ " + entry + " ] }\n" }
	whole := inject(`{ host: "api.example:443", secret: one, header: X-One }`)
	if bare := parsed(t, allowed); policy.RefusesOwn(bare, "api.example", 443) || len(policy.SecretsOf(bare)) > 0 || bare.Requests().Judged("api.example", 8443) {
		t.Fatal("INCONCLUSIVE: a policy without a secret has one")
	}
	for name, by := range map[string]string{
		"by itself":       whole,
		"none":            allowed,
		"another port":    inject(`{ host: "api.example:8443", secret: one, header: X-One }`),
		"another header":  inject(`{ host: "api.example:443", secret: one, header: X-Two }`),
		"git alone":       inject(`{ host: "api.example:443", secret: one, header: X-One, git: push }`),
		"another secret":  inject(`{ host: "api.example:443", secret: two, own_credentials: allow }`),
		"own is allowed":  inject(`{ host: "api.example:443", secret: one, header: X-One, own_credentials: allow }`),
		"nothing at all":  "defaults: { action: deny }\n",
		"another's alone": "network_allowlist: [ other.example ]\ncredentials: { inject: [ { host: other.example, secret: two } ] }\n",
	} {
		p, ok := parsed(t, whole).NarrowedBy(parsed(t, by))
		if !ok {
			t.Fatal("it can't be narrowed")
		}
		if n := len(policy.CredentialsAt(p, "api.example", 443)); (n == 1) != (name == "by itself" || name == "own is allowed") {
			t.Errorf("INCONCLUSIVE: %s: %d are given", name, n)
		}
		found := false
		for _, c := range policy.SecretsOfHost(p, "api.example") {
			found = found || c.Secret == "one" && c.Port == 443
		}
		if !found {
			t.Errorf("%s: the secret is for the host no more", name)
		}
		for _, port := range []int{443, 8443} {
			if !policy.RefusesOwn(p, "api.example", port) {
				t.Errorf("%s: port %d takes a credential of the client's own", name, port)
			}
			if !p.Requests().Judged("api.example", port) {
				t.Errorf("%s: nobody reads the requests to port %d", name, port)
			}
		}
		if name == "another's alone" && (!policy.RefusesOwn(p, "other.example", 443) || !p.Requests().Judged("other.example", 443)) {
			t.Error("the host for which the narrower policy alone has a secret takes another")
		}
	}
}

// TestOwnCredentialsAreAllowedByEachPolicy: on a port for which a policy has secrets one of these says so; on
// another one of the host's all do.
func TestOwnCredentialsAreAllowedByEachPolicy(t *testing.T) {
	const allowed = "network_allowlist: [ api.example ]\n"
	own := parsed(t, allowed+"credentials: { inject: [ { host: \"api.example:443\", secret: one, own_credentials: allow }, { host: \"api.example:8443\", secret: two } ] }\n")
	for port, want := range map[int]bool{443: false, 8443: true, 9443: true} {
		if is := policy.RefusesOwn(own, "api.example", port); is != want {
			t.Errorf("port %d refuses: %v", port, is)
		}
	}
	alone := parsed(t, allowed+"credentials: { inject: [ { host: \"api.example:443\", secret: one, own_credentials: allow } ] }\n")
	if policy.RefusesOwn(alone, "api.example", 9443) {
		t.Error("each of the host's allows it, and its other port refuses")
	}
	narrowed, _ := alone.NarrowedBy(parsed(t, allowed))
	if policy.RefusesOwn(narrowed, "api.example", 443) {
		t.Error("a policy that has no secret says something of the host's")
	}
}
