package policy_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

const throwaway = `
name: apart
isolation: gvisor
packages: { default: deny, sdist: throwaway, on_hold: wait 20s, min_release_age: 7d, unaccounted: end }
allowed_packages: { python: [ { name: docopt } ] }
blocked_packages: { python: [ { name: evil } ] }
network_allowlist: [ api.example.com ]
tool_allowlist: [ fetch ]
rules: [ { name: none, condition: { field: command, operator: matches, value: "." }, action: deny, priority: 1 } ]
`

// TestThrowaway: a source distribution is refused as a file, and what is built of it is let
// in, by all that else looks at the source.
func TestThrowaway(t *testing.T) {
	t.Parallel()
	p := mustParse(t, throwaway)
	of := func(name string, kind policy.ArtifactKind) policy.Decision {
		in := wheel(python(name, "1.0"))
		in.Kind, in.Published = kind, clock().AddDate(-1, 0, 0)
		return p.Decide(clock(), in)
	}
	expect(t, "the source", of("docopt", policy.KindSdist), policy.Deny, "packages.sdist")
	expect(t, "a wheel", of("docopt", policy.KindWheel), policy.Allow, "allowed_packages.python.docopt")
	expect(t, "what is built", of("docopt", policy.KindBuilt), policy.Allow, "allowed_packages.python.docopt")
	expect(t, "of what is blocked", of("evil", policy.KindBuilt), policy.Deny, "blocked_packages.python.evil")
	expect(t, "of what no list has", of("other", policy.KindBuilt), policy.Deny, "packages.default")
	young := wheel(python("docopt", "1.0"))
	young.Kind, young.Published = policy.KindBuilt, clock()
	expect(t, "of what is too young", p.Decide(clock(), young), policy.Deny, "packages.min_release_age")
	if !builds(p) {
		t.Error("it does not build apart")
	}
}

// TestBuiltOnlyByThrowaway: under any other word nothing is built, whether or not the policy
// only observes.
func TestBuiltOnlyByThrowaway(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"packages: { default: allow }", "packages: { default: allow, sdist: deny }", "packages: { default: allow, sdist: hold }",
		"mode: observe\npackages: { default: allow, sdist: deny }",
	} {
		p := mustParse(t, text+"\n")
		in := wheel(python("docopt", "1.0"))
		in.Kind = policy.KindBuilt
		expect(t, text, p.Decide(clock(), in), policy.Deny, "packages.kind")
		if builds(p) {
			t.Errorf("%s: it builds", text)
		}
	}
}

// TestThrowawayUnderAnother: a policy that narrows has its say.
func TestThrowawayUnderAnother(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]bool{"deny": false, "hold": false, "allow": true, "throwaway": true} {
		p, _ := mustParse(t, throwaway).NarrowedBy(mustParse(t, "packages: { default: allow, sdist: "+by+" }\n"))
		if builds(p) != want || builds(p.Apart()) {
			t.Errorf("under sdist: %s it builds: %t; in a workshop: %t", by, builds(p), builds(p.Apart()))
		}
	}
}

// TestScriptsThrowaway: what runs a script is refused as it was published, and let in once
// that has run apart, by all that else looks at it. An entry that allows scripts has its
// package run them in the sandbox.
func TestScriptsThrowaway(t *testing.T) {
	t.Parallel()
	p := mustParse(t, `
packages: { default: deny, install_scripts: throwaway, min_release_age: 7d }
allowed_packages: { node: [ { name: esbuild, version: "0.25.0" }, { name: husky, install_scripts: true } ] }
blocked_packages: { node: [ { name: evil } ] }
`)
	of := func(name string, kind policy.ArtifactKind, scripts bool) policy.Decision {
		in := wheel(pkgref.Ref{Ecosystem: pkgref.Node, Name: name, Version: "0.25.0"})
		in.Kind, in.Scripts, in.Published = kind, scripts, clock().AddDate(-1, 0, 0)
		return p.Decide(clock(), in)
	}
	expect(t, "as published", of("esbuild", policy.KindPackage, true), policy.Deny, "packages.install_scripts")
	expect(t, "without scripts", of("esbuild", policy.KindPackage, false), policy.Allow, "allowed_packages.node.esbuild")
	expect(t, "once they ran", of("esbuild", policy.KindRan, false), policy.Allow, "allowed_packages.node.esbuild")
	expect(t, "by its source", of("esbuild", policy.KindRan, true), policy.Allow, "allowed_packages.node.esbuild")
	expect(t, "of what is blocked", of("evil", policy.KindRan, false), policy.Deny, "blocked_packages.node.evil")
	expect(t, "of what no list has", of("other", policy.KindRan, false), policy.Deny, "packages.default")
	expect(t, "of an entry that allows scripts", of("husky", policy.KindPackage, true), policy.Allow, "allowed_packages.node.husky")
	for name, want := range map[string]bool{"esbuild": true, "husky": false} {
		if got := p.MakesApart(policy.KindRan, pkgref.Ref{Ecosystem: pkgref.Node, Name: name}); got != want {
			t.Errorf("scripts of %s run apart: %t", name, got)
		}
	}
	if builds(p) {
		t.Error("it builds source distributions")
	}
	in := wheel(pkgref.Ref{Ecosystem: pkgref.Node, Name: "esbuild", Version: "0.25.0"})
	in.Kind, in.Scripts, in.Published = policy.KindPackage, true, clock().AddDate(-1, 0, 0)
	expect(t, "in a workshop, which is apart", p.Apart().Decide(clock(), in), policy.Allow, "allowed_packages.node.esbuild")
	in.Kind = policy.KindRan
	for _, word := range []string{"deny", "hold"} {
		p := mustParse(t, "packages: { default: allow, install_scripts: "+word+" }\n")
		expect(t, "under "+word, p.Decide(clock(), in), policy.Deny, "packages.kind")
		in := in
		in.Kind = policy.KindPackage
		if d := p.Apart().Decide(clock(), in); d.Allowed() {
			t.Errorf("under %s a workshop has scripts run: %s", word, d.Reason)
		}
	}
	for by, want := range map[string]bool{"deny": false, "hold": false, "allow": true, "throwaway": true} {
		n, _ := p.NarrowedBy(mustParse(t, "packages: { default: allow, install_scripts: "+by+" }\n"))
		if got := n.MakesApart(policy.KindRan, in.Package); got != want {
			t.Errorf("under install_scripts: %s they run apart: %t", by, got)
		}
	}
}

// TestInstallIn stands for both words where they are absent, and contradicts those that have
// untrusted code run in the sandbox.
func TestInstallIn(t *testing.T) {
	t.Parallel()
	project := pkgref.Ref{Ecosystem: pkgref.Node, Name: "esbuild"}
	for text, want := range map[string][2]bool{
		"": {true, true}, ", sdist: deny": {false, true}, ", install_scripts: deny": {true, false}, ", sdist: throwaway, install_scripts: throwaway": {true, true},
	} {
		p := mustParse(t, "packages: { default: allow, install_in: throwaway"+text+" }\n")
		if got := [2]bool{builds(p), p.MakesApart(policy.KindRan, project)}; got != want {
			t.Errorf("install_in: throwaway%s makes %v", text, got)
		}
	}
	for _, text := range []string{"sdist: allow", "sdist: hold", "install_scripts: allow", "install_scripts: hold"} {
		_, err := policy.Parse("p.yaml", []byte("packages: { install_in: throwaway, "+text+" }\n"))
		if err == nil || !strings.Contains(err.Error(), "is to run in the sandbox itself") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := policy.Parse("p.yaml", []byte("packages: { install_in: sandbox }\n")); err == nil {
		t.Error("another word is taken")
	}
}

// builds tells whether a policy has source distributions built apart.
func builds(p *policy.Policy) bool {
	return p.MakesApart(policy.KindBuilt, pkgref.Ref{Ecosystem: pkgref.Python, Name: "docopt"})
}

// TestApart: the policy of a workshop judges packages as the run's does, and has nothing
// else.
func TestApart(t *testing.T) {
	t.Parallel()
	whole := mustParse(t, throwaway)
	narrowed, ok := whole.NarrowedBy(mustParse(t, "packages: { default: allow, sdist: allow }\nnetwork_allowlist: [ api.example.com ]\ntool_allowlist: [ fetch ]\n"))
	if !ok {
		t.Fatal("it can't be narrowed")
	}
	command := "python3 -m pip"
	for name, p := range map[string]*policy.Policy{"alone": whole.Apart(), "narrowed": narrowed.Apart()} {
		if p.Digest() != whole.Digest() || p.Isolation() != "gvisor" || p.MinReleaseAge() == 0 || p.Unaccounted() != policy.UnaccountedRecord {
			t.Errorf("%s: it is of another policy", name)
		}
		if mode, _ := p.OnHold(); mode != policy.HoldFail {
			t.Errorf("%s: what waits would %s", name, mode)
		}
		for kind, effect := range map[policy.ArtifactKind]policy.Effect{policy.KindWheel: policy.Allow, policy.KindSdist: policy.Deny, policy.KindBuilt: policy.Deny} {
			in := wheel(python("docopt", "1.0"))
			in.Kind, in.Published = kind, clock().AddDate(-1, 0, 0)
			if d := p.Decide(clock(), in); d.Effect != effect {
				t.Errorf("%s: %s is %s (%s)", name, kind, d.Effect, d.Rule)
			}
		}
		if names := p.NetworkAllowlist(); len(names) > 0 || p.ToolListed("fetch").Allowed() || len(p.Mounts()) > 0 {
			t.Errorf("%s: it has %v and tools", name, names)
		}
		if d := p.DecideCommand(policy.CommandInput{Command: &command}); !d.Allowed() {
			t.Errorf("%s: its own command is refused: %s", name, d.Reason)
		}
	}
	if len(whole.NetworkAllowlist()) != 1 || !whole.ToolListed("fetch").Allowed() || whole.DecideCommand(policy.CommandInput{Command: &command}).Allowed() {
		t.Error("the run's own has changed")
	}
}
