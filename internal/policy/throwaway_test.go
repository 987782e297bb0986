package policy_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/policy"
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
	if !p.BuildsApart() {
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
		if p.BuildsApart() {
			t.Errorf("%s: it builds", text)
		}
	}
}

// TestThrowawayUnderAnother: a policy that narrows has its say.
func TestThrowawayUnderAnother(t *testing.T) {
	t.Parallel()
	for by, builds := range map[string]bool{"deny": false, "hold": false, "allow": true, "throwaway": true} {
		p, _ := mustParse(t, throwaway).NarrowedBy(mustParse(t, "packages: { default: allow, sdist: "+by+" }\n"))
		if p.BuildsApart() != builds || p.Apart().BuildsApart() {
			t.Errorf("under sdist: %s it builds: %t; in a workshop: %t", by, p.BuildsApart(), p.Apart().BuildsApart())
		}
	}
}

// TestScriptsAreNotThrowaway: the value is refused, with the reason.
func TestScriptsAreNotThrowaway(t *testing.T) {
	t.Parallel()
	_, err := policy.Parse("p.yaml", []byte("packages: { install_scripts: throwaway }\n"))
	if err == nil || !strings.Contains(err.Error(), "packages.install_scripts can't be throwaway: what a script leaves") {
		t.Errorf("it is %v", err)
	}
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
