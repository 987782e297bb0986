package sdk

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
)

// TestBuildsOfADaemon: templates that clients build, with sandboxes that are real and
// packages that come from the machine's own registry; what a build installed stands in
// the ledger of what is made of it, and nothing of a build is left but what was asked for.
// The longer program, Python's, is tried with COFFERDAM_LONG.
func TestBuildsOfADaemon(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	t.Run("javascript", func(t *testing.T) {
		run(t, append(d.builders(t, "javascript"), "SDK_DIR="+javaScript(t, "latest")), 7, "node", "build.mjs")
	})
	if long() {
		t.Run("python", func(t *testing.T) {
			run(t, d.builders(t, "python"), 8, python(t, "latest"), "build.py")
		})
	}
	d.leavesNothing(t, "system") // packages of the distribution are on no list
	for kind, least := range map[string]int{"begun": 2, "step": 10, "ready": 2, "failed": 2} {
		if n := strings.Count(d.records(t, "build"), `"event":"`+kind+`"`); n < least {
			t.Errorf("%d records of builds say %q, want %d at least", n, kind, least)
		}
	}
	for _, outcome := range []string{"served", "installed"} {
		if text := d.records(t, "package", outcome); !strings.Contains(text, `"ecosystem":"debian","package_name":"gawk"`) {
			t.Errorf("no record says that a package of the distribution was %s: %s", outcome, text)
		}
	}
	if all, err := d.client.Snapshots(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("snapshots are left: %+v, %v", all, err)
	}
}

// builders are two clients under the list of packages.
func (d *daemon) builders(t *testing.T, run string) []string {
	t.Helper()
	env := append([]string{}, d.env...)
	for variable, name := range map[string]string{"E2B_API_KEY": "build-", "OTHER_KEY": "other-"} {
		made, err := d.client.MakeToken(t.Context(), api.MakeToken{Name: name + run, Policy: "list"})
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, variable+"="+made.Secret)
	}
	return env
}

// records are those of a kind, of some outcomes or of all, as JSON lines.
func (d *daemon) records(t *testing.T, kind string, outcomes ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), d.binary, "audit", "list", "--kind", kind, "--json")
	for _, outcome := range outcomes {
		cmd.Args = append(cmd.Args, "--outcome", outcome)
	}
	cmd.Env = d.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
