package policy_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/preset"
)

// TestPresets: a preset's names are open by a rule that names it, and no others are.
func TestPresets(t *testing.T) {
	t.Parallel()
	p := mustParse(t, "network_allowlist: [ own.example ]\nnetwork_presets: [ anthropic, openai ]\n")
	for _, c := range []struct {
		name   string
		port   int
		effect policy.Effect
		rule   string
	}{
		{"api.anthropic.com", 443, policy.Allow, "network_presets.anthropic.api.anthropic.com"},
		{"api.openai.com", 443, policy.Allow, "network_presets.openai.api.openai.com"},
		{"own.example", 443, policy.Allow, "network_allowlist.own.example"},
		{"api.anthropic.com", 22, policy.Deny, "network_default"},
		{"anthropic.com", 443, policy.Deny, "network_default"},
		{"api.anthropic.com.evil.example", 443, policy.Deny, "network_default"},
		{"claude.ai", 443, policy.Deny, "network_default"},
	} {
		expect(t, c.name, p.Host(c.name, c.port), c.effect, c.rule)
	}
	if d := p.Host("api.openai.com", 443); d.Reason != "api.openai.com is in the policy's preset openai" {
		t.Errorf("%q", d.Reason)
	}
	if d := mustParse(t, "{}").Host("api.anthropic.com", 443); d.Allowed() {
		t.Errorf("without the preset: %+v", d)
	}
	narrowed, _ := p.NarrowedBy(mustParse(t, "network_presets: [ openai ]\n"))
	if narrowed.Host("api.anthropic.com", 443).Allowed() || !narrowed.Host("api.openai.com", 443).Allowed() {
		t.Error("a policy that narrows does not take a preset away, or takes both")
	}
}

// TestEveryPreset: each is in order as a document's entry, and lets an agent reach its names.
func TestEveryPreset(t *testing.T) {
	t.Parallel()
	shipped, err := preset.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range shipped.Names() {
		if p := mustParse(t, "network_presets: [ "+name+" ]\n"); len(p.NetworkAllowlist()) != len(shipped.Presets[name].Hosts) {
			t.Errorf("%s: %v", name, p.NetworkAllowlist())
		}
	}
	for name, agent := range shipped.Agents {
		p := mustParse(t, string(agent.Document(shipped, shipped.WithKeys())))
		if p.Name() != name || len(p.NetworkAllowlist()) == 0 || len(policy.Credentials(p)) != len(agent.Keys) {
			t.Errorf("%s: %v", name, p.NetworkAllowlist())
		}
	}
}

// TestGithubRead: everything there can be read, nothing can be written, and a document can
// add a push, or all that the wider preset has, to none of it.
func TestGithubRead(t *testing.T) {
	t.Parallel()
	for document, pushed := range map[string]bool{
		"network_presets: [ github-read ]\n":         false,
		"network_presets: [ github-read, github ]\n": false,
		"network_presets: [ github-read ]\nnetwork_allowlist: [ { host: github.com, git: { repos: [acme/*], push: hold } } ]\n": true,
	} {
		requests := mustParse(t, document).Requests()
		for _, c := range []struct {
			host    string
			request policy.Request
			allowed bool
		}{
			{"github.com", fetching("any/thing.git")[0], true},
			{"github.com", fetching("any/thing.git")[1], true},
			{"github.com", policy.Request{Method: "GET", Path: "/any/thing/archive/main.tar.gz"}, true},
			{"api.github.com", policy.Request{Method: "GET", Path: "/repos/any/thing"}, true},
			{"github.com", pushing("acme/app")[0], pushed},
			{"github.com", pushing("acme/app")[1], pushed},
			{"github.com", pushing("any/thing")[0], false},
			{"github.com", pushing("any/thing")[1], false},
			{"github.com", policy.Request{Method: "POST", Path: "/any/thing.git/info/lfs/objects/batch"}, false},
			{"api.github.com", policy.Request{Method: "POST", Path: "/graphql"}, false},
			{"api.github.com", policy.Request{Method: "DELETE", Path: "/repos/any/thing"}, false},
		} {
			if d, _ := requests.Judge(c.host, 443, c.request); d.Allowed() != c.allowed {
				t.Errorf("%s: %+v at %s: %s", document, c.request, c.host, d.Reason)
			}
		}
	}
}

// TestPresetsThatAreNone: the place is told, and the words that there are.
func TestPresetsThatAreNone(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		"name: a\nnetwork_presets: [ anthropic, anthropics ]\n": "p:2:31: network_presets[1] must be amp, anthropic, ",
		"network_presets: [ openai, openai ]\n":                 "p:1:28: network_presets[1]: the preset openai is there already",
		"network_presets: openai\n":                             "p:1:18: network_presets must be a list",
		"network_presets: [ { a: b } ]\n":                       "p:1:20: network_presets[0]",
		"network_presets: [ anthropic ]\nnetwork_allowlist: [ " + manyPorts("api.anthropic.com", 8) + " ]\n": "api.anthropic.com is listed on 10 ports",
	} {
		if _, err := policy.Parse("p", []byte(document)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", document, err, want)
		}
	}
}

func manyPorts(name string, n int) string {
	var entries []string
	for i := range n {
		entries = append(entries, "\""+name+":"+"800"+string(rune('0'+i))+"\"")
	}
	return strings.Join(entries, ", ")
}
