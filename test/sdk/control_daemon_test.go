package sdk

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
)

// TestControlOfADaemon: the programs of the control plane with sandboxes that are
// real: paused, snapshotted, forked and ended as theirs.
func TestControlOfADaemon(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	for _, name := range []string{"data", "secret"} {
		if _, err := d.client.PutPolicy(t.Context(), name, api.PutPolicy{Document: []byte("packages: { default: hold }\n")}); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range javaScriptVersions() {
		t.Run("javascript "+version, func(t *testing.T) {
			run(t, append(d.clientsOf(t, "js-"+version), "SDK_DIR="+javaScript(t, version)), 12, "node", "control.mjs")
		})
	}
	for _, version := range pythonVersions() {
		t.Run("python "+version, func(t *testing.T) {
			if !long() {
				t.Skip("set COFFERDAM_LONG=1 for it: the same questions are put from JavaScript always")
			}
			run(t, d.clientsOf(t, "py-"+version), 11, python(t, version), "control.py")
		})
	}
	d.leavesNothing(t)
}

// clientsOf makes the clients of one run of a program, which count against nobody
// else's quota.
func (d *daemon) clientsOf(t *testing.T, run string) []string {
	t.Helper()
	env := append([]string{}, d.env...)
	env = append(env, "E2B_DOMAIN="+domain, "TEST_DOMAIN="+domain)
	for variable, token := range map[string]api.MakeToken{
		"E2B_API_KEY": {Name: "main", Policies: []string{"data"}},
		"OTHER_KEY":   {Name: "other"},
		"FEW_KEY":     {Name: "few", Quota: api.Quota{Sandboxes: 1}},
		"SLOW_KEY":    {Name: "slow", Quota: api.Quota{CreatesPerMinute: 1}},
	} {
		token.Name += "-" + run
		made, err := d.client.MakeToken(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, variable+"="+made.Secret)
	}
	return env
}
