package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// TestOutfit: an agent gets its variables and, without a policy, its names; a policy that is
// given is neither changed nor gone against.
func TestOutfit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const enough = "network_presets: [ anthropic, claude-account ]\npackages: { default: deny }\n"
	for _, c := range []struct {
		what    string
		flags   runFlags
		problem string
	}{
		{"no policy", runFlags{agent: "claude"}, ""},
		{"its presets", runFlags{agent: "claude", policy: file("enough", enough)}, ""},
		{"asks a person", runFlags{agent: "claude", policy: file("holds", "network_unlisted: hold\n")}, ""},
		{"only observes", runFlags{agent: "claude", policy: file("observes", "mode: observe\n")}, ""},
		{"too little", runFlags{agent: "claude", policy: file("little", "network_presets: [ anthropic ]\n")}, "does not let claude reach claude.ai; add to it: network_presets: [ anthropic, claude-account ]"},
		{"unknown", runFlags{agent: "claud"}, "there is no agent \"claud\"; known here: amp, claude, "},
	} {
		c.flags.env = []string{"DISABLE_AUTOUPDATER=0"}
		req, err := c.flags.sandboxRequest(dir)
		if c.problem != "" {
			if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: %v", c.what, err)
			}
			continue
		}
		if err != nil || req.Env["IS_SANDBOX"] != "1" || req.Env["DISABLE_AUTOUPDATER"] != "0" {
			t.Errorf("%s: %v %v", c.what, req.Env, err)
			continue
		}
		given := []byte(nil)
		if c.flags.policy != "" {
			if given, err = os.ReadFile(c.flags.policy); err != nil || string(given) != string(req.Policy.Document) {
				t.Errorf("%s: the policy is changed: %q", c.what, req.Policy.Document)
			}
			continue
		}
		p, err := policy.Parse("p", req.Policy.Document)
		if err != nil || !p.Host("api.anthropic.com", 443).Allowed() || p.Host("other.example", 443).Allowed() || p.Name() != "claude" {
			t.Errorf("%s: %v %q", c.what, err, req.Policy.Document)
		}
	}
	if req, err := (runFlags{env: []string{"A=b"}}).sandboxRequest(dir); err != nil || len(req.Env) != 1 || len(req.Policy.Document) != 0 {
		t.Errorf("without an agent: %+v %v", req, err)
	}
}

// TestPresetList: what is listed is what a policy takes.
func TestPresetList(t *testing.T) {
	t.Parallel()
	list, err := listPresets()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range list.Presets {
		if _, err := policy.Parse("p", []byte("network_presets: [ "+row.Name+" ]\nnetwork_allowlist: [ "+strings.Join(row.Hosts, ", ")+" ]\n")); err != nil {
			t.Errorf("%s: %v", row.Name, err)
		}
	}
	var out strings.Builder
	if err := writePresets(&out, list); err != nil || !strings.Contains(out.String(), "anthropic") || !strings.Contains(out.String(), "DISABLE_AUTOUPDATER") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
