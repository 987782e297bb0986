package policy_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestAPartIsJudgedAsTheWhole: a pre-release that a release of the same project and number
// requires exactly stands or falls with that one, and with what refuses itself.
func TestAPartIsJudgedAsTheWhole(t *testing.T) {
	const part = "0.169.0-linux-x64"
	for what, c := range map[string]struct {
		document string
		version  string
		of       []string
		effect   policy.Effect
		rule     string
	}{
		"by default":                       {"packages: { default: allow }", part, []string{"0.169.0"}, policy.Allow, "packages.default"},
		"of nothing":                       {"packages: { default: allow }", part, nil, policy.Deny, "packages.prereleases"},
		"of another number":                {"packages: { default: allow }", part, []string{"0.170.0"}, policy.Deny, "packages.prereleases"},
		"of itself":                        {"packages: { default: allow }", part, []string{part}, policy.Deny, "packages.prereleases"},
		"of what is one itself":            {"packages: { default: allow }", part, []string{"0.169.0-alpha"}, policy.Deny, "packages.prereleases"},
		"no pre-release":                   {"allowed_packages: { node: [ { name: codex, version: '1.0.0' } ] }", "1.0.1", []string{"1.0.0"}, policy.Deny, "allowed_packages.node.codex.version"},
		"held":                             {"packages: { default: hold }", part, []string{"0.169.0"}, policy.Hold, "packages.default"},
		"denied":                           {"packages: { default: deny }", part, []string{"0.169.0"}, policy.Deny, "packages.default"},
		"of an entry's version":            {"allowed_packages: { node: [ { name: codex, version: '0.169.0' } ] }", part, []string{"0.169.0"}, policy.Allow, "allowed_packages.node.codex"},
		"under an entry's cap":             {"allowed_packages: { node: [ { name: codex, max_version: '0.x' } ] }", part, []string{"0.169.0"}, policy.Allow, "allowed_packages.node.codex"},
		"outside of an entry's version":    {"allowed_packages: { node: [ { name: codex, version: '^0.170.0' } ] }", part, []string{"0.169.0"}, policy.Deny, "allowed_packages.node.codex.version"},
		"blocked":                          {"packages: { default: allow }\nblocked_packages: { node: [ { name: codex, version: '0.169.0-linux-x64' } ] }", part, []string{"0.169.0"}, policy.Deny, "blocked_packages.node.codex"},
		"that runs a script":               {"packages: { default: allow }", part + "-script", []string{"0.169.0"}, policy.Deny, "packages.install_scripts"},
		"of one of several that is let in": {"allowed_packages: { node: [ { name: codex, version: '0.169.0' } ] }", part, []string{"0.169.0-a", "0.169.0"}, policy.Allow, "allowed_packages.node.codex"},
	} {
		t.Run(what, func(t *testing.T) {
			in := archive(node("codex", c.version))
			in.PartOf, in.Scripts = c.of, what == "that runs a script"
			expect(t, what, mustParse(t, c.document).Decide(clock(), in), c.effect, c.rule)
		})
	}
}

// TestWhatTakesAPreRelease: requirements take the pre-releases that they name, in the
// words of their ecosystem, where the policy lets in what no list names.
func TestWhatTakesAPreRelease(t *testing.T) {
	p := mustParse(t, "packages: { default: allow }")
	for _, c := range []struct {
		ecosystem          pkgref.Ecosystem
		version, specifier string
		taken              bool
	}{
		{pkgref.Node, "1.0.0-beta.3", "1.0.0-beta.3", true},
		{pkgref.Node, "1.0.0-beta.3", "^1.0.0-beta.1", true},
		{pkgref.Node, "1.0.1-beta.3", "^1.0.0-beta.1", false},
		{pkgref.Node, "1.0.0-beta.3", "1.0.0-beta.4", false},
		{pkgref.Node, "1.0.0-beta.3", "*", false},
		{pkgref.Node, "1.0.0-beta.3", "next", false},
		{pkgref.Python, "0.50b0", "==0.50b0", true},
		{pkgref.Python, "0.50b0", "===0.50b0", true},
		{pkgref.Python, "0.50b1", ">=0.50b0,<1", true},
		{pkgref.Python, "0.50b1", "~=0.50b0", true},
		{pkgref.Python, "0.50b0", "==0.50b1", false},
		{pkgref.Python, "0.50b0", ">=0.49", false},
		{pkgref.Python, "0.50b0", "<0.51b0", false},
		{pkgref.Python, "0.50b0", "!=0.49b0", false},
		{pkgref.Python, "0.50b0", "", false},
	} {
		in := policy.Input{
			Subject:   policy.Subject{Package: pkgref.Ref{Ecosystem: c.ecosystem, Name: "dep", Version: c.version}},
			FileFacts: archive(node("dep", c.version)).FileFacts,
		}
		in.Edges = []policy.Edge{{Parent: pkgref.Ref{Ecosystem: c.ecosystem, Name: "root", Version: "1.0.0"}, Name: "dep", Specifier: c.specifier}}
		if d := p.Decide(clock(), in); d.Allowed() != c.taken {
			t.Errorf("%s %s, required as %q: %s (%s)", c.ecosystem, c.version, c.specifier, d.Effect, d.Rule)
		}
		if c.taken && !pkgref.MayTakePreReleases(c.ecosystem, c.specifier) {
			t.Errorf("%s %q is said to take none", c.ecosystem, c.specifier)
		}
	}
}
