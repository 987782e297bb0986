package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

const observing = "mode: observe\n"

// TestObserving: what a document's own choices refuse is let through, and the decision says
// what it would have been; nothing that is known to be harmful is.
func TestObserving(t *testing.T) {
	const deny = "packages: { default: deny }\n"
	old := clock().AddDate(-1, 0, 0)
	pinned := func(in policy.Input, version string, digests ...string) policy.Input {
		in.Lock = lockOf(policy.LockFrozen, false, policy.Pin{Version: version, Lockfile: "uv.lock", Digests: digests})
		return in
	}
	with := func(in policy.Input, change func(*policy.Input)) policy.Input { change(&in); return in }
	for _, c := range []struct {
		what, document string
		in             policy.Input
		effect, would  policy.Effect
		rule           string
	}{
		{"on no list", deny, wheel(python("a", "1.0")), policy.Allow, policy.Deny, "packages.default"},
		{"on no list, held", "packages: { default: hold }\n", wheel(python("a", "1.0")), policy.Allow, policy.Hold, "packages.default"},
		{"above its entry", "allowed_packages: { python: [ { name: a, max_version: \"1.x\" } ] }\n", wheel(python("a", "2.0")), policy.Allow, policy.Deny, "allowed_packages.python.a.max_version"},
		{"a pre-release", "packages: { default: allow }\n", wheel(python("a", "2.0rc1")), policy.Allow, policy.Deny, "packages.prereleases"},
		{"a source distribution", "packages: { default: allow }\n", with(wheel(python("a", "1.0")), func(in *policy.Input) { in.Kind = policy.KindSdist }), policy.Allow, policy.Deny, "packages.sdist"},
		{"install scripts", "packages: { default: allow, install_scripts: hold }\n", with(archive(node("a", "1.0.0")), func(in *policy.Input) { in.Scripts = true }), policy.Allow, policy.Hold, "packages.install_scripts"},
		{"too young", "packages: { default: allow, min_release_age: 7d }\n", with(wheel(python("a", "1.0")), func(in *policy.Input) { in.Published = clock() }), policy.Allow, policy.Deny, "packages.min_release_age"},
		{"no digest", "packages: { default: allow, require_hashes: true }\n", with(wheel(python("a", "1.0")), func(in *policy.Input) { in.Complete = true }), policy.Allow, policy.Deny, "packages.require_hashes"},
		{"a toolchain", "packages: { default: allow }\n", with(wheel(python("a", "1.0")), func(in *policy.Input) { in.Toolchain = true }), policy.Allow, policy.Deny, "packages.toolchains"},
		{"a look-alike", "packages: { default: allow }\n", with(wheel(python("reqests", "1.0")), func(in *policy.Input) { in.Lookalike = &policy.Lookalike{Name: "requests", How: "a letter"} }), policy.Allow, policy.Deny, "packages.similar_names"},
		{"outside a lockfile", "packages: { default: allow }\n", pinned(wheel(python("a", "2.0")), "1.0", "sha256:aa"), policy.Allow, policy.Deny, "packages.lockfile"},
		{"outside a lockfile, with its bytes", "packages: { default: allow }\n", with(pinned(wheel(python("a", "2.0")), "1.0", "sha256:aa"), func(in *policy.Input) { in.Digests, in.Complete = []string{"sha256:cc"}, true }), policy.Allow, policy.Deny, "packages.lockfile"},
		// The controls: what the document allows is allowed, and no word is lost about it.
		{"allowed", "packages: { default: allow }\n", wheel(python("a", "1.0")), policy.Allow, "", "packages.default"},
		{"listed", "allowed_packages: { python: [ { name: a } ] }\n", wheel(python("a", "1.0")), policy.Allow, "", "allowed_packages.python.a"},
		{"old enough", "packages: { default: allow, min_release_age: 7d }\n", with(wheel(python("a", "1.0")), func(in *policy.Input) { in.Published = old }), policy.Allow, "", "packages.default"},
		// The rules that are enforced all the same, whatever else is only observed.
		{"blocked", deny + "blocked_packages: { python: [ { name: a } ] }\n", wheel(python("a", "1.0")), policy.Deny, "", "blocked_packages.python.a"},
		{"blocked in a range", deny + "blocked_packages: { python: [ { name: a, version: \"<2\" } ] }\n", wheel(python("a", "1.0")), policy.Deny, "", "blocked_packages.python.a"},
		{"malware", deny, with(wheel(python("a", "1.0")), func(in *policy.Input) { in.Malware = []policy.Malware{{ID: "MAL-1", Every: true}} }), policy.Deny, "", "advisory.MAL-1"},
		{"a release that is malware", deny, with(wheel(python("a", "1.0")), func(in *policy.Input) { in.Malware = []policy.Malware{{ID: "MAL-1", Versions: []string{"1.0"}}} }), policy.Deny, "", "advisory.MAL-1"},
		{"a private name from elsewhere", deny, with(wheel(python("a", "1.0")), func(in *policy.Input) { in.Owner, in.Upstream = "https://own.example/", "https://other.example/" }), policy.Deny, "", "namespaces"},
		{"not the pinned bytes", deny, with(pinned(wheel(python("a", "1.0")), "1.0", "sha256:aa"), func(in *policy.Input) { in.Digests, in.Complete = []string{"sha256:bb"}, true }), policy.Deny, "", "packages.lockfile.digest"},
		{"not to be compared with the pinned bytes", deny, with(pinned(wheel(python("a", "1.0")), "1.0", "sha256:aa"), func(in *policy.Input) { in.Digests, in.Complete = []string{"md5:bb"}, true }), policy.Deny, "", "packages.lockfile.digest"},
		{"no kind of file to install", deny, with(wheel(python("a", "1.0")), func(in *policy.Input) { in.Kind = policy.KindOther }), policy.Deny, "", "packages.kind"},
		{"no canonical name", deny, wheel(python("A_a", "1.0")), policy.Deny, "", "canonical"},
		{"no canonical version", deny, wheel(python("a", "one")), policy.Deny, "", "canonical"},
	} {
		enforced := mustParse(t, c.document).Decide(clock(), c.in)
		got := mustParse(t, observing+c.document).Decide(clock(), c.in)
		expect(t, c.what, got, c.effect, c.rule)
		if got.Would != c.would {
			t.Errorf("%s: would be %q, want %q", c.what, got.Would, c.would)
		}
		if enforced.Would != "" || c.would != "" && (enforced.Effect != c.would || enforced.Rule != got.Rule || enforced.Reason != got.Reason || enforced.Suggest != got.Suggest) {
			t.Errorf("%s: enforced it is %+v, and observed %+v", c.what, enforced, got)
		}
	}
}

// TestObservingSaysWhatEnforcingDoes: for any document and question, what is let through
// only because the policy observes is what it would refuse, by the same rule; and the rest
// is as ever.
func TestObservingSaysWhatEnforcingDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := drawDocument(rt).yaml()
		enforces, observes := mustParse(rt, text), mustParse(rt, observing+text)
		for range 10 {
			in := drawQuestion(rt).input()
			want, got := enforces.Decide(clock(), in), observes.Decide(clock(), in)
			wellFormed(rt, got)
			switch {
			case !got.Allowed():
				if want.Allowed() || got.Would != "" {
					rt.Fatalf("observing refuses %+v: %+v, %+v\n%s", in, want, got, text)
				}
			case want.Allowed():
				if fmt.Sprintf("%+v", want) != fmt.Sprintf("%+v", got) {
					rt.Fatalf("what is allowed changes: %+v, %+v\n%s", want, got, text)
				}
			case got.Would != want.Effect || got.Rule != want.Rule:
				rt.Fatalf("%+v is observed as %+v\n%s", want, got, text)
			}
		}
	})
}

// TestObservingNarrows: under a policy that enforces, one that observes opens nothing, in
// either order.
func TestObservingNarrows(t *testing.T) {
	const denies, allows, lists, names = "packages: { default: deny }\n", "packages: { default: allow }\n", "allowed_packages: { python: [ { name: a } ] }\n", "network_allowlist: [ new.example ]\n"
	for _, c := range []struct {
		p, by         string
		effect, would policy.Effect
		host          policy.Effect
	}{
		{observing + denies, denies + "name: other\n", policy.Deny, "", policy.Deny},
		{denies, observing + denies, policy.Deny, "", policy.Deny},
		{denies, observing + allows, policy.Deny, "", policy.Deny},
		{"packages: { default: hold }\n", observing + denies, policy.Hold, "", policy.Deny},
		{lists + names, observing + denies, policy.Allow, policy.Deny, policy.Allow}, // the controls: it is only the refusal of the other that counts
		{observing + denies, allows + names, policy.Allow, policy.Deny, policy.Allow},
		{observing + denies, observing + "packages: { default: hold }\n", policy.Allow, policy.Deny, policy.Allow},
		{observing + "packages: { default: hold }\n", observing + denies, policy.Allow, policy.Deny, policy.Allow},
	} {
		p, ok := mustParse(t, c.p).NarrowedBy(mustParse(t, c.by))
		if !ok || !policy.Observes(p) && strings.Contains(c.p+c.by, "mode") {
			t.Fatalf("%q and %q: %v, observes %v", c.p, c.by, ok, policy.Observes(p))
		}
		j := p.Judge(clock(), policy.Subject{Package: python("a", "")})
		for what, d := range map[string]policy.Decision{
			"file": j.File(policy.FileFacts{Version: "1.0", Kind: policy.KindWheel}), "release": j.Release("1.0"), "name": j.Name(), "kept": j.Kept("1.0", nil),
		} {
			if d.Effect != c.effect || d.Would != c.would {
				t.Errorf("%s under %q and %q: %+v", what, c.p, c.by, d)
			}
		}
		if d := p.Host("new.example", 443); d.Effect != c.host || (d.Effect == policy.Allow) != (len(p.HostPorts("new.example")) > 0) {
			t.Errorf("the name under %q and %q: %+v %v", c.p, c.by, d, p.HostPorts("new.example"))
		}
	}
	if p := mustParse(t, denies); policy.Observes(p) || policy.Observes(mustParse(t, "mode: enforce\n"+denies)) {
		t.Error("a policy observes that does not say so")
	}
}

// TestObservedNames: a name that is not listed is open on the ports of TLS and HTTP, and
// nothing else is that the policy refuses.
func TestObservedNames(t *testing.T) {
	const list = "network_allowlist: [ api.example, { host: db.example, port: 5432, tcp: true }, \"plain.example:8443\" ]\n"
	observes, holds, enforces := mustParse(t, observing+list), mustParse(t, observing+list+"network_unlisted: hold\n"), mustParse(t, list)
	for _, c := range []struct {
		name          string
		port          int
		effect, would policy.Effect
	}{
		{"new.example", 0, policy.Allow, policy.Deny},
		{"new.example", 443, policy.Allow, policy.Deny},
		{"new.example", 80, policy.Allow, policy.Deny},
		{"db.example", 443, policy.Allow, policy.Deny},
		{"api.example", 443, policy.Allow, ""},
		{"db.example", 5432, policy.Allow, ""},
		{"new.example", 22, policy.Deny, ""},
		{"api.example", 8443, policy.Deny, ""},
		{"127.0.0.1", 443, policy.Deny, ""},
		{"169.254.169.254", 80, policy.Deny, ""},
		{"localhost", 443, policy.Deny, ""},
		{"metadata.google.internal", 80, policy.Deny, ""},
		{"git.corp", 443, policy.Deny, ""},
		{"single", 443, policy.Deny, ""},
		{"", 443, policy.Deny, ""},
	} {
		d := observes.Host(c.name, c.port)
		if d.Effect != c.effect || d.Would != c.would || d.Would != "" && (d.Rule != "network_default" || d.Suggest == "") {
			t.Errorf("%q on %d: %+v", c.name, c.port, d)
		}
		if d := holds.Host(c.name, c.port); c.would != "" && (d.Would != policy.Hold || d.Rule != "network_unlisted") || d.Effect != c.effect {
			t.Errorf("held: %q on %d: %+v", c.name, c.port, d)
		}
		if d := enforces.Host(c.name, c.port); d.Would != "" || d.Allowed() != (c.effect == policy.Allow && c.would == "") {
			t.Errorf("enforced: %q on %d: %+v", c.name, c.port, d)
		}
		if tcp := observes.HostTCP(c.name, c.port); tcp.Allowed() != (c.port == 5432) || tcp.Would != "" {
			t.Errorf("other protocols to %q on %d: %+v", c.name, c.port, tcp)
		}
	}
	if d := observes.HostTCP("plain.example", 8443); d.Allowed() {
		t.Errorf("another protocol where TLS and HTTP are listed: %+v", d)
	}
}

// TestAnswersWhileObserving: a person's no counts, and a yes is the policy's own.
func TestAnswersWhileObserving(t *testing.T) {
	yes, no := policy.Approval{ID: "ap-yes", Version: "1.0", By: "ann", Digests: []string{"sha256:aa"}}, policy.Approval{ID: "ap-no", Version: "1.0", By: "bob", Denied: true}
	for _, c := range []struct {
		what, document string
		answers        []policy.Approval
		effect, would  policy.Effect
	}{
		{"would wait, nobody answered", "packages: { default: hold }\n", nil, policy.Allow, policy.Hold},
		{"would wait, approved", "packages: { default: hold }\n", []policy.Approval{yes}, policy.Allow, ""},
		{"would wait, denied", "packages: { default: hold }\n", []policy.Approval{yes, no}, policy.Deny, ""},
		{"would be denied, approved", "packages: { default: deny }\n", []policy.Approval{yes}, policy.Allow, policy.Deny},
		{"would be denied, denied", "packages: { default: deny }\n", []policy.Approval{no}, policy.Deny, ""},
		{"allowed, denied elsewhere", "packages: { default: allow }\n", []policy.Approval{no}, policy.Allow, ""},
	} {
		p := mustParse(t, observing+c.document)
		in := wheel(python("a", "1.0"))
		in.Digests, in.Approvals = []string{"sha256:aa"}, c.answers
		if d := p.Decide(clock(), in); d.Effect != c.effect || d.Would != c.would {
			t.Errorf("%s: %+v", c.what, d)
		}
		if !p.MayHold() {
			t.Errorf("%s: nobody's answers are gathered", c.what)
		}
	}
	host := mustParse(t, observing+"network_unlisted: hold\n").Host("new.example", 443)
	if d := policy.AnswerHost(host, "new.example", []policy.Approval{yes}); !d.Allowed() || d.Would != "" || d.Approval != "ap-yes" {
		t.Errorf("an approved name: %+v", d)
	}
	if d := policy.AnswerHost(host, "new.example", []policy.Approval{yes, no}); d.Effect != policy.Deny {
		t.Errorf("a denied name: %+v", d)
	}
	if d := policy.AnswerHost(host, "new.example", nil); d.Would != policy.Hold {
		t.Errorf("a name that nobody answered: %+v", d)
	}
}

// TestObservingKeepsTheWay: what an observed release of an entry requires comes through that
// entry, so that one refusal is told, and not one for each dependency.
func TestObservingKeepsTheWay(t *testing.T) {
	const document = observing + "packages: { min_release_age: 7d }\nallowed_packages: { python: [ { name: rich, with_dependencies: true } ] }\n"
	p := mustParse(t, document)
	young := wheel(python("rich", "13.0"))
	young.Published = clock()
	if d := p.Decide(clock(), young); d.Would != policy.Deny || d.Rule != "packages.min_release_age" || d.Through != "allowed_packages.python.rich" {
		t.Errorf("%+v", d)
	}
	dependency := wheel(python("idna", "3.7"), edge("rich", "rich", "idna", ">=2"))
	dependency.Published = clock().AddDate(-1, 0, 0)
	if d := p.Decide(clock(), dependency); !d.Allowed() || d.Would != "" {
		t.Errorf("%+v", d)
	}
	// A package that is only observed for want of a list may yet be required by something, and is no plan's
	// hold.
	if d := p.Judge(clock(), policy.Subject{Package: python("other", "")}).Name(); !d.ByNoList() || d.Would != policy.Deny {
		t.Errorf("%+v", d)
	}
	if d := p.Planning().Judge(clock(), policy.Subject{Package: python("other", "")}).Name(); d.Effect != policy.Allow || d.Would != policy.Deny {
		t.Errorf("in a plan: %+v", d)
	}
	metadata := policy.Input{Subject: policy.Subject{Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "other", Version: "1.0"}}, FileFacts: policy.FileFacts{Kind: policy.KindMetadata}}
	if d := p.Decide(clock(), metadata); !d.Admitted() {
		t.Errorf("metadata: %+v", d)
	}
}

// TestRulesAreNotObserved: commands are judged by rules, of which each has audit for itself.
func TestRulesAreNotObserved(t *testing.T) {
	const rules = "rules: [ { name: no-curl, condition: { field: command, operator: contains, value: curl }, action: deny } ]\ndefaults: { action: deny }\n"
	p := mustParse(t, observing+rules+"packages: { system: deny }\ntool_allowlist: [ one ]\n")
	curl, other, tool := "curl x", "true", "two"
	for what, in := range map[string]policy.CommandInput{"a rule": {Command: &curl}, "the default": {Command: &other}, "a tool": {Tool: &tool}} {
		if d := p.DecideCommand(in); d.Effect != policy.Deny || d.Would != "" {
			t.Errorf("%s: %+v", what, d)
		}
	}
	if d := p.System(); d.Effect != policy.Deny {
		t.Errorf("packages of the distribution: %+v", d)
	}
	if notes := p.Notes(); len(notes) == 0 || !strings.Contains(notes[0], "only observes") {
		t.Errorf("%q", notes)
	}
	if _, err := policy.Parse("p", []byte("mode: watch\n")); err == nil || !strings.Contains(err.Error(), "mode must be enforce or observe") {
		t.Errorf("%v", err)
	}
}
