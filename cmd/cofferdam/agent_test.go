package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
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
		{"a home", runFlags{agent: "claude", home: "work"}, ""},
		{"a home of nobody's", runFlags{home: "work"}, "say with --agent which one"},
		{"a home of what is not known", runFlags{agent: "amp", home: "work"}, "not known here where amp keeps"},
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
		if home := req.Home; (home != nil) != (c.flags.home != "") || home != nil && (home.Name != "work" || !slices.Contains(home.Keeps, ".claude")) || req.Env["CLAUDE_CONFIG_DIR"] != "/home/agent/.claude" {
			t.Errorf("%s: %+v %v", c.what, home, req.Env)
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

// TestAgentKeys: an agent gets placeholders of the keys that are declared for its services,
// if it has no policy but its own; else it is told that it has none, once.
func TestAgentKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "p.yaml")
	const document = "network_presets: [ anthropic, claude-account ]\ncredentials: { inject: [ { host: api.anthropic.com, secret: mine, env: K } ] }\n"
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	bare := filepath.Join(dir, "bare.yaml")
	if err := os.WriteFile(bare, []byte("network_presets: [ anthropic, claude-account ]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	anthropic := api.Secret{Name: "anthropic", Hosts: []string{"api.anthropic.com"}}
	openai := api.Secret{Name: "openai", Hosts: []string{"api.openai.com"}}
	for _, c := range []struct {
		what     string
		flags    runFlags
		declared []api.Secret
		env      map[string]string // variables of placeholders, with the secrets' names
		said     string
	}{
		{"a key", runFlags{agent: "claude"}, []api.Secret{anthropic, openai}, map[string]string{"ANTHROPIC_API_KEY": "anthropic"}, ""},
		{"its own variable", runFlags{agent: "codex"}, []api.Secret{anthropic, openai}, map[string]string{"CODEX_API_KEY": "openai"}, ""},
		{"any of some", runFlags{agent: "opencode"}, []api.Secret{openai}, map[string]string{"OPENAI_API_KEY": "openai"}, ""},
		{"none", runFlags{agent: "claude"}, []api.Secret{openai}, nil, "note: claude starts without a key; for one that it never sees, add to the daemon's configuration secrets: [ { preset: anthropic, "},
		{"of the name alone", runFlags{agent: "claude"}, []api.Secret{{Name: "anthropic", Hosts: []string{"evil.example"}}}, nil, "without a key"},
		{"the person's own", runFlags{agent: "claude", env: []string{"ANTHROPIC_API_KEY=x"}}, []api.Secret{anthropic}, nil, ""},
		{"a policy with one", runFlags{agent: "claude", policy: path}, []api.Secret{anthropic}, map[string]string{"K": "mine"}, ""},
		{"a policy without", runFlags{agent: "claude", policy: bare}, []api.Secret{anthropic}, nil, "add to the policy credentials: { inject: [ { host: api.anthropic.com, secret: anthropic, env: ANTHROPIC_API_KEY } ] }"},
		{"no agent", runFlags{}, []api.Secret{anthropic}, nil, ""},
		{"one that has no key", runFlags{agent: "amp"}, nil, nil, ""},
	} {
		req, err := c.flags.sandboxRequest(dir)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		said := ""
		say := func(format string, args ...any) { said += fmt.Sprintf(format, args...) }
		if err := c.flags.addAgentKeys(func() ([]api.Secret, error) { return c.declared, nil }, &req, say); err != nil || !strings.Contains(said, c.said) || (c.said == "") != (said == "") {
			t.Errorf("%s: %v, said %q", c.what, err, said)
		}
		if c.flags.agent == "" {
			if len(req.Policy.Document) > 0 {
				t.Errorf("%s: a policy %s", c.what, req.Policy.Document)
			}
			continue
		}
		p, err := policy.Parse("p", req.Policy.Document)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		env := map[string]string{}
		for _, given := range policy.Credentials(p) {
			for _, name := range given.Env {
				env[name] = given.Secret
			}
			if !p.Host(given.Host, 443).Allowed() {
				t.Errorf("%s: %s is closed", c.what, given.Host)
			}
		}
		if len(env) != len(c.env) || !maps.Equal(env, c.env) && len(env) > 0 {
			t.Errorf("%s: %v, want %v", c.what, env, c.env)
		}
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
