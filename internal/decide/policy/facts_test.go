package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

func node(name, version string) pkgref.Ref {
	return pkgref.Ref{Ecosystem: pkgref.Node, Name: name, Version: version}
}

func module(path, version string) pkgref.Ref {
	return pkgref.Ref{Ecosystem: pkgref.Go, Name: path, Version: version}
}

// archive asks about the one file of a release.
func archive(ref pkgref.Ref, edges ...policy.Edge) policy.Input {
	return policy.Input{Subject: policy.Subject{Package: ref, Edges: edges}, FileFacts: policy.FileFacts{Kind: policy.KindPackage}}
}

// wants is an edge through the entry of its parent.
func wants(parent pkgref.Ref, name, specifier string) policy.Edge {
	return policy.Edge{Parent: parent, Through: "allowed_packages." + string(parent.Ecosystem) + "." + parent.Name, Name: name, Specifier: specifier}
}

func expect(t *testing.T, what string, d policy.Decision, effect policy.Effect, rule string) {
	t.Helper()
	wellFormed(t, d)
	if d.Effect != effect || d.Rule != rule {
		t.Errorf("%s: %s by %s (%s), want %s by %s", what, d.Effect, d.Rule, d.Reason, effect, rule)
	}
}

func TestMalware(t *testing.T) {
	p := mustParse(t, "packages: { default: allow }\nallowed_packages: { node: [ { name: listed, prereleases: true } ], python: [ { name: a } ], go: [ { name: example.com/m } ] }")
	tests := []struct {
		ref     pkgref.Ref
		malware policy.Malware
		denied  bool
	}{
		{node("listed", "1.2.3"), policy.Malware{Every: true}, true},
		{node("listed", "1.2.3"), policy.Malware{Versions: []string{"1.2.3"}}, true},
		{node("listed", "1.2.4"), policy.Malware{Versions: []string{"1.2.3"}}, false},
		{node("listed", "1.2.4-rc.1"), policy.Malware{Ranges: []policy.AffectedRange{{Introduced: "1.2.3", Fixed: "1.2.4"}}}, true},
		{node("listed", "1.10.0"), policy.Malware{Ranges: []policy.AffectedRange{{Introduced: "1.2.3", LastAffected: "1.9.0"}}}, false},
		{node("listed", "9.0.0"), policy.Malware{Ranges: []policy.AffectedRange{{Introduced: "1.2.3"}}}, true},
		{node("listed", "1.0.0"), policy.Malware{Ranges: []policy.AffectedRange{{Introduced: "1.2.3"}}}, false},
		{node("listed", "1.2.3-rc.1"), policy.Malware{Ranges: []policy.AffectedRange{{Introduced: "1.2.3"}}}, false}, // as OSV has it: order alone
		{node("listed", "1.0.0"), policy.Malware{Ranges: []policy.AffectedRange{{Introduced: "0"}}}, true},
		{node("listed", "1.0.0"), policy.Malware{Ranges: []policy.AffectedRange{{Introduced: "not a version"}}}, true},
		{node("listed", "1.0.0"), policy.Malware{Versions: []string{"one"}}, true},
		{python("a", "1.0"), policy.Malware{Versions: []string{"1.0.0"}}, true},
		{python("a", "1.10"), policy.Malware{Ranges: []policy.AffectedRange{{Introduced: "1.2", Fixed: "1.9"}}}, false},
		{module("example.com/m", "v1.2.3"), policy.Malware{Versions: []string{"1.2.3"}}, true},
		{module("example.com/m", "v1.2.3"), policy.Malware{Ranges: []policy.AffectedRange{{Introduced: "v1.2.0", Fixed: "1.3.0"}}}, true},
		{module("example.com/m", "v1.3.0"), policy.Malware{Ranges: []policy.AffectedRange{{Introduced: "1.2.0", Fixed: "1.3.0"}}}, false},
	}
	for _, tt := range tests {
		in := archive(tt.ref)
		tt.malware.ID = "MAL-2026-7"
		in.Malware = []policy.Malware{{ID: "MAL-2026-1", Versions: []string{"0.0.0"}}, tt.malware}
		if tt.ref.Ecosystem == pkgref.Go {
			in.Malware = in.Malware[1:]
		}
		d := p.Decide(clock(), in)
		if denied := d.ResolvedBy == policy.ByAdvisory && d.Rule == "advisory.MAL-2026-7" && d.Alarm && d.Effect == policy.Deny; denied != tt.denied {
			t.Errorf("%v, %+v: %+v", tt.ref, tt.malware, d)
		}
		if !tt.denied && !d.Allowed() {
			t.Errorf("%v, %+v: %+v", tt.ref, tt.malware, d)
		}
	}
}

func TestNamespaces(t *testing.T) {
	p := mustParse(t, `
packages: { default: allow }
namespaces:
  - { ecosystem: node, pattern: "@acme/*", upstream: "https://npm.acme.example/" }
  - { ecosystem: node, pattern: "@acme/open-*", upstream: "https://npm.other.example/" }
  - { ecosystem: node, pattern: "@acme/open-one", upstream: "https://npm.acme.example/" }
  - { ecosystem: python, pattern: "Acme_*", upstream: "https://pypi.acme.example/simple/" }
`)
	tests := []struct {
		ref             pkgref.Ref
		upstream, owner string
		want            policy.Effect
	}{
		{node("@acme/x", "1.0.0"), "https://npm.acme.example/", "", policy.Allow},
		{node("@acme/x", "1.0.0"), "https://npm.acme.example", "", policy.Allow},
		{node("@acme/x", "1.0.0"), "https://npm.example/", "", policy.Deny},
		{node("@acme/x", "1.0.0"), "", "", policy.Deny},
		{node("@acme/open-two", "1.0.0"), "https://npm.other.example/", "", policy.Allow},
		{node("@acme/open-two", "1.0.0"), "https://npm.acme.example/", "", policy.Deny},
		{node("@acme/open-one", "1.0.0"), "https://npm.acme.example/", "", policy.Allow},
		{node("@acme/x", "1.0.0"), "https://npm.acme.example/", "https://installation.example/", policy.Deny},
		{node("@acme/x", "1.0.0"), "https://installation.example/", "https://installation.example/", policy.Allow},
		{node("acme", "1.0.0"), "https://npm.example/", "", policy.Allow},
		{node("acme", "1.0.0"), "", "", policy.Allow},
		{python("acme-tools", "1.0"), "https://pypi.example/simple/", "", policy.Deny},
		{python("acme", "1.0"), "https://pypi.example/simple/", "", policy.Allow},
	}
	for _, tt := range tests {
		in := archive(tt.ref)
		in.Upstream, in.Owner = tt.upstream, tt.owner
		d := p.Decide(clock(), in)
		if d.Effect != tt.want || (d.Effect == policy.Deny) != (d.ResolvedBy == policy.ByNamespace) {
			t.Errorf("%v at %q: %+v", tt.ref, tt.upstream, d)
		}
	}
	installation := []policy.Namespace{{Ecosystem: pkgref.Node, Pattern: "@acme/x", Upstream: "https://installation.example/"}}
	if owner, owned := p.Owner(installation, node("@acme/x", "")); owner != "https://installation.example/" || !owned {
		t.Errorf("the installation's own namespace gives %q", owner)
	}
	same := []policy.Namespace{
		{Ecosystem: pkgref.Node, Pattern: "acme*", Upstream: "https://prefix.example/"},
		{Ecosystem: pkgref.Node, Pattern: "acme", Upstream: "https://name.example/"},
		{Ecosystem: pkgref.Node, Pattern: "acm*", Upstream: "https://short.example/"},
		{Ecosystem: pkgref.Node, Pattern: "acme", Upstream: "https://second.example/"},
	}
	if owner, _ := policy.OwnerOf(same, node("acme", "")); owner != "https://name.example/" {
		t.Errorf("a whole name gives way to a prefix: %s", owner)
	}
	if owner, owned := p.Owner(installation, node("left-pad", "")); owner != "" || owned {
		t.Errorf("nobody's name is %q's", owner)
	}
}

func lockOf(mode policy.LockMode, trusted bool, pins ...policy.Pin) *policy.Lock {
	return &policy.Lock{Mode: mode, Trusted: trusted, Pins: pins}
}

func TestLockfiles(t *testing.T) {
	const listed = "allowed_packages: { node: [ { name: a, max_version: \"1.x\" }, { name: b } ], python: [ { name: py } ] }"
	pin := func(version string, digests ...string) policy.Pin {
		return policy.Pin{Version: version, Digests: digests, Lockfile: "app/package-lock.json", Line: 7}
	}
	frozen, prefer := policy.LockFrozen, policy.LockPrefer
	tests := []struct {
		name     string
		ref      pkgref.Ref
		lock     *policy.Lock
		digests  []string
		complete bool
		effect   policy.Effect
		rule     string
		pinned   string
		alarm    bool
	}{
		{"inside", node("a", "1.2.3"), lockOf(frozen, false, pin("1.2.3", "sha512:aa")), []string{"sha512:aa"}, false, policy.Allow, "allowed_packages.node.a", "1.2.3", false},
		{"inside, whole", node("a", "1.2.3"), lockOf(frozen, false, pin("1.2.3", "sha512:aa")), []string{"sha512:aa", "sha256:bb"}, true, policy.Allow, "allowed_packages.node.a", "1.2.3", false},
		{"inside, not comparable yet", node("a", "1.2.3"), lockOf(frozen, false, pin("1.2.3", "sha512:aa")), []string{"sha1:bb"}, false, policy.Allow, "allowed_packages.node.a", "1.2.3", false},
		{"not comparable for ever", node("a", "1.2.3"), lockOf(frozen, false, pin("1.2.3", "sha384:aa")), []string{"sha512:cc", "sha256:bb"}, true, policy.Deny, "packages.lockfile.digest", "1.2.3", false},
		{"a weak digest is no proof", node("a", "1.2.3"), lockOf(frozen, false, pin("1.2.3", "sha1:aa", "sha512:cc")), []string{"sha1:aa", "sha256:bb"}, true, policy.Deny, "packages.lockfile.digest", "1.2.3", false},
		{"another file", node("a", "1.2.3"), lockOf(frozen, false, pin("1.2.3", "sha512:aa")), []string{"sha512:ab"}, false, policy.Deny, "packages.lockfile.digest", "1.2.3", true},
		{"a longer digest", node("a", "1.2.3"), lockOf(frozen, false, pin("1.2.3", "sha512:aa")), []string{"sha512:aab"}, false, policy.Deny, "packages.lockfile.digest", "1.2.3", true},
		{"another file, trusted", node("z", "1.2.3"), lockOf(frozen, true, pin("1.2.3", "sha512:aa")), []string{"sha512:ab"}, true, policy.Deny, "packages.lockfile.digest", "1.2.3", true},
		{"another version", node("a", "1.2.4"), lockOf(frozen, false, pin("1.2.3", "sha512:aa")), nil, false, policy.Deny, "packages.lockfile", "1.2.3", false},
		{"another version, prefer", node("a", "1.2.4"), lockOf(prefer, false, pin("1.2.3", "sha512:aa")), nil, false, policy.Deny, "packages.lockfile", "1.2.3", false},
		{"outside", node("b", "1.0.0"), lockOf(frozen, false), nil, false, policy.Deny, "packages.lockfile", "", false},
		{"outside, trusted", node("b", "1.0.0"), lockOf(frozen, true), nil, false, policy.Deny, "packages.lockfile", "", false},
		{"outside, prefer", node("b", "1.0.0"), lockOf(prefer, false), nil, false, policy.Allow, "allowed_packages.node.b", "", false},
		{"inside and on no list", node("z", "1.0.0"), lockOf(frozen, false, pin("1.0.0", "sha512:aa")), []string{"sha512:aa"}, false, policy.Deny, "packages.default", "1.0.0", false},
		{"trusted and on no list", node("z", "1.0.0"), lockOf(frozen, true, pin("1.0.0", "sha512:aa")), []string{"sha512:aa"}, false, policy.Allow, "packages.lockfile", "1.0.0", false},
		{"trusted above the cap", node("a", "2.0.0-rc.1"), lockOf(frozen, true, pin("2.0.0-rc.1", "sha512:aa")), []string{"sha512:aa"}, false, policy.Allow, "packages.lockfile", "2.0.0-rc.1", false},
		{"two pins", node("a", "1.2.3"), lockOf(frozen, false, pin("1.0.0", "sha512:aa"), pin("1.2.3", "sha512:ab")), []string{"sha512:ab"}, false, policy.Allow, "allowed_packages.node.a", "1.2.3", false},
		{"another spelling", python("py", "1.0.0"), lockOf(frozen, false, pin("1.0", "sha256:aa")), []string{"sha256:aa"}, false, policy.Allow, "allowed_packages.python.py", "1.0", false},
		{"only its go.mod", module("example.com/m", "v1.0.0"), lockOf(frozen, true, policy.Pin{Version: "v1.0.0", Metadata: []string{"h1:aa"}, Lockfile: "go.sum"}), nil, false, policy.Deny, "packages.lockfile", "", false},
	}
	p := mustParse(t, listed)
	for _, tt := range tests {
		in := archive(tt.ref)
		in.Lock, in.Digests, in.Complete = tt.lock, tt.digests, tt.complete
		d := p.Decide(clock(), in)
		expect(t, tt.name, d, tt.effect, tt.rule)
		if d.Pinned != tt.pinned || d.Alarm != tt.alarm {
			t.Errorf("%s: pinned %q, alarm %v", tt.name, d.Pinned, d.Alarm)
		}
		if d.Rule == "packages.lockfile.digest" && !strings.Contains(d.Reason, "package-lock.json line 7") {
			t.Errorf("%s: %s", tt.name, d.Reason)
		}
	}
	if d := p.Judge(clock(), policy.Subject{Package: node("z", ""), Lock: lockOf(frozen, true, pin("1.0.0", "sha512:aa"))}).Name(); !d.Allowed() {
		t.Errorf("a trusted name: %+v", d)
	}
	if d := p.Judge(clock(), policy.Subject{Package: node("b", ""), Lock: lockOf(frozen, true)}).Name(); d.Allowed() {
		t.Errorf("a name that is outside: %+v", d)
	}
}

// TestUnpinnedEntriesRefuseTheirNames in each mode, with and without trust, the name's page and its files; and they refuse nothing that
// another entry pins. The control is the same question without the entry.
func TestUnpinnedEntriesRefuseTheirNames(t *testing.T) {
	p := mustParse(t, "packages: { default: allow }")
	entry := policy.Unpinned{Version: "1.0.0", Reason: "comes from a repository", Lockfile: "app/package-lock.json", Line: 12}
	held := policy.Pin{Version: "2.0.0", Digests: []string{"sha512:aa"}, Lockfile: "app/package-lock.json", Line: 7}
	const why = "package-lock.json line 12 comes from a repository"
	for _, mode := range []policy.LockMode{policy.LockFrozen, policy.LockPrefer} {
		for _, trusted := range []bool{false, true} {
			ask := func(version string, unpinned []policy.Unpinned, pins ...policy.Pin) (name, file policy.Decision) {
				lock := &policy.Lock{Mode: mode, Trusted: trusted, Pins: pins, Unpinned: unpinned}
				in := archive(node("b", version))
				in.Lock, in.Digests, in.Complete = lock, []string{"sha512:aa"}, true
				return p.Judge(clock(), policy.Subject{Package: node("b", ""), Lock: lock}).Name(), p.Decide(clock(), in)
			}
			without := entry
			without.Version = ""
			for version, entries := range map[string][]policy.Unpinned{"1.0.0": {entry}, "3.0.0": {entry}, "2.0.0": {without}} {
				name, file := ask(version, entries)
				for _, d := range []policy.Decision{name, file} {
					expect(t, fmt.Sprint(mode, trusted, version), d, policy.Deny, "packages.lockfile")
					if !strings.Contains(d.Reason, why) {
						t.Errorf("%s: %s", version, d.Reason)
					}
				}
			}
			if name, file := ask("1.0.0", nil); name.Allowed() != (mode == policy.LockPrefer) || file.Allowed() != name.Allowed() {
				t.Errorf("%s without the entry: %+v", mode, file)
			}
			if name, file := ask("2.0.0", []policy.Unpinned{entry}, held); !name.Allowed() || !file.Allowed() {
				t.Errorf("%s: what another entry pins: %+v %+v", mode, name, file)
			}
			if _, file := ask("1.0.0", []policy.Unpinned{entry}, held); file.Allowed() || !strings.Contains(file.Reason, why) {
				t.Errorf("%s: beside a pin: %+v", mode, file)
			}
			if _, file := ask("3.0.0", []policy.Unpinned{entry}, held); file.Allowed() || strings.Contains(file.Reason, why) {
				t.Errorf("%s: a version of neither: %+v", mode, file)
			}
		}
	}
}

// TestTrustStandsForTheAllowlistOnly: what else judges a file still does.
func TestTrustStandsForTheAllowlistOnly(t *testing.T) {
	p := mustParse(t, "packages: { min_release_age: 7d, require_hashes: true }\nblocked_packages: { node: [ { name: z, version: \"2.0.0\" } ] }")
	in := func(version string) policy.Input {
		in := archive(node("z", version))
		in.Lock = lockOf(policy.LockFrozen, true, policy.Pin{Version: version, Digests: []string{"sha512:aa"}})
		in.Digest, in.Digests, in.Published = "sha512:aa", []string{"sha512:aa"}, clock().Add(-30*24*time.Hour)
		return in
	}
	expect(t, "as it is", p.Decide(clock(), in("1.0.0")), policy.Allow, "packages.lockfile")
	expect(t, "blocked", p.Decide(clock(), in("2.0.0")), policy.Deny, "blocked_packages.node.z")
	young, scripted, weak, odd := in("1.0.0"), in("1.0.0"), in("1.0.0"), in("1.0.0")
	young.Published, scripted.Scripts, weak.Digest, odd.Kind = clock(), true, "sha1:aa", policy.KindOther
	expect(t, "young", p.Decide(clock(), young), policy.Deny, "packages.min_release_age")
	expect(t, "scripts", p.Decide(clock(), scripted), policy.Deny, "packages.install_scripts")
	expect(t, "weak", p.Decide(clock(), weak), policy.Deny, "packages.require_hashes")
	expect(t, "kind", p.Decide(clock(), odd), policy.Deny, "packages.kind")
}

func TestInstallScripts(t *testing.T) {
	for _, tt := range []struct {
		key     string
		version string
		want    policy.Effect
	}{
		{"", "1.0.0", policy.Deny},
		{"deny", "1.0.0", policy.Deny},
		{"hold", "1.0.0", policy.Hold},
		{"allow", "1.0.0", policy.Allow},
		{"", "2.1.0", policy.Allow},
		{"hold", "2.1.0", policy.Allow},
	} {
		document := "allowed_packages: { node: [ { name: esbuild }, { name: esbuild, version: \"~2.1.0\", install_scripts: true } ] }\n"
		if tt.key != "" {
			document += "packages: { install_scripts: " + tt.key + " }\n"
		}
		p := mustParse(t, document)
		in := archive(node("esbuild", tt.version))
		if d := p.Decide(clock(), in); !d.Allowed() {
			t.Errorf("without scripts: %+v", d)
		}
		in.Scripts = true
		d := p.Decide(clock(), in)
		if d.Effect != tt.want {
			t.Errorf("%q, %s: %+v", tt.key, tt.version, d)
		}
		if d.Effect != policy.Allow && (d.Rule != "packages.install_scripts" || d.Suggest != "allowed_packages:\n  node:\n    - name: esbuild\n      max_version: \"1.x\"\n      install_scripts: true\n") {
			t.Errorf("%+v", d)
		}
	}
}

func TestRequireHashes(t *testing.T) {
	p := mustParse(t, "packages: { require_hashes: true, default: allow }")
	for _, tt := range []struct {
		digest   string
		complete bool
		want     policy.Effect
	}{
		{"sha256:aa", false, policy.Allow},
		{"sha512:aa", true, policy.Allow},
		{"h1:aa", true, policy.Allow},
		{"sha384:a", true, policy.Allow},
		{"sha1:aa", false, policy.Deny},
		{"md5:aa", true, policy.Deny},
		{"", false, policy.Allow},
		{"", true, policy.Deny},
		{"sha256", true, policy.Allow},
	} {
		in := archive(node("a", "1.0.0"))
		in.Digest, in.Complete, in.Digests = tt.digest, tt.complete, []string{"sha256:our-own"}
		if d := p.Decide(clock(), in); d.Effect != tt.want {
			t.Errorf("%q, complete %v: %+v", tt.digest, tt.complete, d)
		}
	}
}

func TestNamesOnNoList(t *testing.T) {
	tests := []struct {
		packages             string
		lookalike, toolchain bool
		effect               policy.Effect
		rule                 string
		by                   policy.ResolvedBy
	}{
		{"default: allow", false, false, policy.Allow, "packages.default", policy.ByDefault},
		{"default: allow", true, false, policy.Deny, "packages.similar_names", policy.ByAdvisory},
		{"default: allow, similar_names: hold", true, false, policy.Hold, "packages.similar_names", policy.ByAdvisory},
		{"default: hold, similar_names: hold", true, false, policy.Hold, "packages.default", policy.ByDefault},
		{"default: hold, similar_names: allow", true, false, policy.Hold, "packages.default", policy.ByDefault},
		{"default: allow, similar_names: allow", true, false, policy.Allow, "packages.default", policy.ByDefault},
		{"default: deny, similar_names: allow", true, false, policy.Deny, "packages.default", policy.ByDefault},
		{"default: allow", false, true, policy.Deny, "packages.toolchains", policy.ByToolchain},
		{"default: deny, toolchains: allow", false, true, policy.Allow, "packages.toolchains", policy.ByToolchain},
		{"default: allow, toolchains: hold", false, true, policy.Hold, "packages.toolchains", policy.ByToolchain},
	}
	for _, tt := range tests {
		p := mustParse(t, "packages: { "+tt.packages+" }\nallowed_packages: { node: [ { name: root, with_dependencies: true }, { name: listed } ] }")
		in := archive(node("lodahs", "1.0.0"))
		in.Toolchain = tt.toolchain
		if tt.lookalike {
			in.Lookalike = &policy.Lookalike{Name: "lodash", How: "two letters are swapped"}
		}
		d := p.Decide(clock(), in)
		expect(t, tt.packages, d, tt.effect, tt.rule)
		if d.ResolvedBy != tt.by {
			t.Errorf("%s: by %s", tt.packages, d.ResolvedBy)
		}
		if tt.lookalike && !d.Allowed() && d.Rule != "packages.default" && !strings.Contains(d.Reason, "lodahs looks like lodash") {
			t.Errorf("%s: %s", tt.packages, d.Reason)
		}
		if tt.lookalike && d.Suggest != "" {
			t.Errorf("%s: suggests to allow a name that imitates: %s", tt.packages, d.Suggest)
		}
		if running := in; tt.lookalike {
			running.Scripts = true
			if d := p.Decide(clock(), running); d.Allowed() || d.Suggest != "" {
				t.Errorf("%s: suggests to run the scripts of a name that imitates: %s %s", tt.packages, d.Effect, d.Suggest)
			}
		}
		if tt.lookalike {
			in.Declared = true
			in.Edges = []policy.Edge{{Parent: node("other", "1.0.0"), Name: "lodahs", Specifier: "^1.0.0"}}
			if d := p.Decide(clock(), in); d.Rule != "packages.default" || tt.packages[:14] == "default: allow" && !d.Allowed() {
				t.Errorf("%s: what an admitted release requires is judged by its name: %+v", tt.packages, d)
			}
			in.Declared = false
		}
		in.Edges = []policy.Edge{wants(node("root", "1.0.0"), "lodahs", "^1.0.0")}
		expect(t, tt.packages+", a dependency", p.Decide(clock(), in), policy.Allow, "allowed_packages.node.root.with_dependencies")
		in.Package.Name = "listed"
		expect(t, tt.packages+", listed", p.Decide(clock(), in), policy.Allow, "allowed_packages.node.listed")
	}
}

// TestTwoTimes: where the clock has jumped, what is old enough by one time alone waits
// for a person, whichever of them is right; by both, it is as always.
func TestTwoTimes(t *testing.T) {
	p := mustParse(t, "packages: { default: allow, min_release_age: 7d }")
	day := 24 * time.Hour
	for _, tt := range []struct {
		published, jump time.Duration
		want            policy.Effect
	}{
		{-8 * day, 30 * day, policy.Allow},
		{-6 * day, 30 * day, policy.Hold},
		{-6 * day, time.Hour, policy.Deny},
		{day, 30 * day, policy.Hold}, // in the future by the one
		{-8 * day, -2 * day, policy.Hold},
		{-40 * day, -30 * day, policy.Allow},
		{-6 * day, -30 * day, policy.Deny},
	} {
		for _, swapped := range []bool{false, true} {
			in := archive(node("a", "1.0.0"))
			in.Published = clock().Add(tt.published)
			now := clock()
			in.Otherwise = now.Add(tt.jump)
			if swapped {
				now, in.Otherwise = in.Otherwise, now
			}
			if d := p.Decide(now, in); d.Effect != tt.want || !d.Allowed() && d.Rule != "packages.min_release_age" {
				t.Errorf("published %s, a jump of %s (%v): %+v", tt.published, tt.jump, swapped, d)
			}
		}
	}
	in := archive(node("a", "1.0.0"))
	in.Published, in.Otherwise = clock().Add(-time.Hour), clock().Add(30*day)
	if d := mustParse(t, "packages: { default: allow }").Decide(clock(), in); !d.Allowed() {
		t.Errorf("a policy that asks for no age: %+v", d)
	}
}

func TestFirstSeen(t *testing.T) {
	p := mustParse(t, "packages: { default: allow, min_release_age: 7d, age_source: first-seen }")
	for _, tt := range []struct {
		seen time.Time
		want policy.Effect
	}{
		{time.Time{}, policy.Hold},
		{clock().Add(-7 * 24 * time.Hour), policy.Allow},
		{clock().Add(-7*24*time.Hour + time.Second), policy.Deny},
		{clock().Add(time.Second), policy.Hold},
	} {
		in := archive(node("a", "1.0.0"))
		in.FirstSeen, in.Published = tt.seen, clock().Add(-900*24*time.Hour)
		if d := p.Decide(clock(), in); d.Effect != tt.want || !d.Allowed() && d.Rule != "packages.min_release_age" {
			t.Errorf("seen %s: %+v", tt.seen, d)
		}
		if from := p.AgedFrom(in.FileFacts); !from.Equal(tt.seen) {
			t.Errorf("its age counts from %s", from)
		}
	}
	if p.NeedsTimes() || !mustParse(t, "packages: { min_release_age: 7d }").NeedsTimes() {
		t.Error("whether times are needed")
	}
}

func TestMetadata(t *testing.T) {
	const mod = "example.com/m"
	metadata := func(lock *policy.Lock, edges ...policy.Edge) policy.Input {
		in := archive(module(mod, "v0.0.0-20240101000000-abcdefabcdef"), edges...)
		in.Kind, in.Lock = policy.KindMetadata, lock
		return in
	}
	unrelated := policy.Edge{Parent: module("example.com/p", "v1.0.0"), Name: mod, Specifier: ">=v9.0.0"}
	pin := policy.Pin{Version: "v0.0.0-20240101000000-abcdefabcdef", Metadata: []string{"h1:aa"}, Lockfile: "go.sum", Line: 2}
	other := pin
	other.Version = "v1.0.0"
	deny := ""
	tests := []struct {
		name, document string
		in             policy.Input
		effect         policy.Effect
		rule           string
	}{
		{"unknown", deny, metadata(nil), policy.Deny, "packages.default"},
		{"wanted by anything", deny, metadata(nil, unrelated), policy.Allow, "packages.metadata"},
		{"listed in another version", "allowed_packages: { go: [ { name: " + mod + ", max_version: \"v0.x\" } ] }", metadata(nil), policy.Allow, "allowed_packages.go." + mod},
		{"held", "packages: { default: hold }", metadata(nil), policy.Allow, "packages.default"},
		{"blocked", "blocked_packages: { go: [ { name: " + mod + " } ] }", metadata(nil, unrelated), policy.Deny, "blocked_packages.go." + mod},
		{"another version is blocked", "blocked_packages: { go: [ { name: " + mod + ", version: \"<1\" } ] }", metadata(nil, unrelated), policy.Allow, "packages.metadata"},
		{"outside of the lockfile", "packages: { default: allow }", metadata(lockOf(policy.LockFrozen, false)), policy.Deny, "packages.lockfile"},
		{"pinned", deny, metadata(lockOf(policy.LockFrozen, false, pin)), policy.Allow, "packages.lockfile"},
		{"pinned in another version", deny, metadata(lockOf(policy.LockFrozen, false, other)), policy.Allow, "packages.lockfile"},
	}
	for _, tt := range tests {
		expect(t, tt.name, mustParse(t, "name: x\n"+tt.document).Decide(clock(), tt.in), tt.effect, tt.rule)
	}
	for _, tt := range tests { // what a query may lead to is judged by the name alone
		tt.in.Package.Version, tt.in.Version, tt.in.Digests = "", "", []string{"h1:bb"}
		expect(t, tt.name+", in no version", mustParse(t, "name: x\n"+tt.document).Decide(clock(), tt.in), tt.effect, tt.rule)
	}
	for _, tt := range tests[:4] { // what waits is read about, and admitted by nothing
		d := mustParse(t, "name: x\n"+tt.document).Decide(clock(), tt.in)
		if held := tt.name == "held"; d.Unadmitted != held || d.Admitted() != (d.Allowed() && !held) {
			t.Errorf("%s: %+v", tt.name, d)
		}
	}
	if d := mustParse(t, "name: x\npackages: { default: hold }").Decide(clock(), metadata(nil, unrelated)); !d.Allowed() || d.Admitted() {
		t.Errorf("wanted by what waits: %+v", d)
	}
	p := mustParse(t, "name: x\n")
	in := metadata(lockOf(policy.LockFrozen, false, pin))
	in.Digests = []string{"h1:aa"}
	expect(t, "its digest", p.Decide(clock(), in), policy.Allow, "packages.lockfile")
	in.Digests = []string{"h1:bb"}
	d := p.Decide(clock(), in)
	expect(t, "another digest", d, policy.Deny, "packages.lockfile.digest")
	if !d.Alarm {
		t.Error("another digest of a go.mod is no alarm")
	}
	in = metadata(nil, unrelated)
	in.Malware = []policy.Malware{{ID: "MAL-1", Every: true}}
	expect(t, "burnt", p.Decide(clock(), in), policy.Deny, "advisory.MAL-1")
	in.Malware, in.Owner = nil, "https://own.example/"
	expect(t, "private", p.Decide(clock(), in), policy.Deny, "namespaces")
	in.Owner, in.Version = "", "latest"
	expect(t, "no version", p.Decide(clock(), in), policy.Deny, "canonical")
}

// TestGoEdges: a go.mod names the least version; pre-releases, and commits that
// look like them, only if it names exactly them.
func TestGoEdges(t *testing.T) {
	const commit = "v0.0.0-20240101000000-abcdefabcdef"
	for _, tt := range []struct {
		specifier, version string
		want               policy.Effect
	}{
		{">=v1.2.0", "v1.2.0", policy.Allow},
		{">=v1.2.0", "v1.9.0", policy.Allow},
		{">=v1.2.0", "v1.1.9", policy.Deny},
		{">=v1.2.0", "v1.3.0-rc.1", policy.Deny},
		{">=v1.3.0-rc.1", "v1.3.0-rc.1", policy.Allow},
		{">=v1.3.0-rc.1", "v1.3.0-rc.2", policy.Deny},
		{">=" + commit, commit, policy.Allow},
		{">=" + commit, "v0.0.0-20250101000000-abcdefabcdef", policy.Deny},
		{">=" + commit, "v0.1.0", policy.Allow},
		{">=v2.0.0+incompatible", "v2.0.1+incompatible", policy.Allow},
		{"latest", "v1.0.0", policy.Deny},
	} {
		through := wants(module("example.com/root", "v1.0.0"), "example.com/m", tt.specifier)
		in := archive(module("example.com/m", tt.version), through)
		listed := mustParse(t, "allowed_packages: { go: [ { name: example.com/root, with_dependencies: true } ] }")
		if d := listed.Decide(clock(), in); d.Effect != tt.want {
			t.Errorf("%s wants %s: %+v", tt.specifier, tt.version, d)
		}
		through.Through = ""
		in.Edges = []policy.Edge{through}
		open := mustParse(t, "packages: { default: allow }")
		named := tt.specifier == ">="+tt.version
		if d := open.Decide(clock(), in); d.Allowed() != (named || !strings.Contains(tt.version, "-")) {
			t.Errorf("by default, %s wants %s: %+v", tt.specifier, tt.version, d)
		}
	}
}

func TestNodeEdges(t *testing.T) {
	for _, tt := range []struct {
		specifier, version string
		want               policy.Effect
	}{
		{"^1.2.0", "1.9.0", policy.Allow},
		{"^1.2.0", "2.0.0", policy.Deny},
		{"^1.2.0", "1.3.0-rc.1", policy.Deny},
		{"^1.3.0-rc.1", "1.3.0-rc.2", policy.Allow},
		{"^1.3.0-rc.1", "1.4.0-rc.1", policy.Deny},
		{"1.x || >=2.5.0", "2.6.0", policy.Allow},
		{"*", "3.0.0", policy.Allow},
		{"", "3.0.0", policy.Allow},
		{"latest", "3.0.0", policy.Deny},
		{"git+ssh://h.example/r", "3.0.0", policy.Deny},
	} {
		p := mustParse(t, "allowed_packages: { node: [ { name: root, with_dependencies: true } ] }")
		in := archive(node("a", tt.version), wants(node("root", "1.0.0"), "a", tt.specifier))
		if d := p.Decide(clock(), in); d.Effect != tt.want {
			t.Errorf("%q wants %s: %+v", tt.specifier, tt.version, d)
		}
		in.Listing = true
		d := p.Decide(clock(), in)
		_, unreadable := map[string]bool{"latest": true, "git+ssh://h.example/r": true}[tt.specifier]
		if d.Allowed() != (tt.want == policy.Allow || !unreadable && !strings.Contains(tt.version, "-")) {
			t.Errorf("%q lists %s: %+v", tt.specifier, tt.version, d)
		}
		if d.Allowed() && tt.want == policy.Deny && d.Through != "" {
			t.Errorf("%q lists %s and admits through it: %+v", tt.specifier, tt.version, d)
		}
	}
}

func TestNodeEntries(t *testing.T) {
	p := mustParse(t, `
allowed_packages:
  node:
    - { name: a, version: "^1.2.0 || ~3.1" }
    - { name: beta, version: "^2.0.0-beta.1" }
    - { name: canary, version: ">=15", prereleases: true }
    - { name: capped, max_version: "2.x" }
blocked_packages: { node: [ { name: a, version: "1.5.x" }, { name: canary, version: "<15.1.0" } ] }
`)
	for release, want := range map[pkgref.Ref]string{
		node("a", "1.4.0"): "allowed_packages.node.a", node("a", "2.0.0"): "allowed_packages.node.a.version", node("a", "3.1.9"): "allowed_packages.node.a",
		node("a", "1.4.0-rc.1"): "allowed_packages.node.a.prereleases", node("a", "1.5.3"): "blocked_packages.node.a", node("a", "1.5.3-rc.1"): "blocked_packages.node.a",
		node("beta", "2.0.0-beta.2"): "allowed_packages.node.beta", node("beta", "2.1.0-beta.2"): "allowed_packages.node.beta.prereleases", node("beta", "2.1.0"): "allowed_packages.node.beta",
		node("canary", "15.2.0-canary.3"): "allowed_packages.node.canary", node("canary", "15.0.0-canary.3"): "blocked_packages.node.canary",
		node("capped", "2.9.9"): "allowed_packages.node.capped", node("capped", "3.0.0-rc.1"): "allowed_packages.node.capped.max_version", node("capped", "2.9.9-rc.1"): "allowed_packages.node.capped.prereleases",
	} {
		if d := p.Decide(clock(), archive(release)); d.Rule != want {
			t.Errorf("%v: %+v", release, d)
		}
	}
}

func TestLockRules(t *testing.T) {
	for document, want := range map[string]policy.LockRules{
		"name: x\n":                    {},
		"packages: { lockfile: {} }\n": {Given: true, Mode: policy.LockFrozen},
		"packages: { lockfile: { files: [a/uv.lock, go.sum], mode: prefer, trust: true } }\n": {Given: true, Files: []string{"a/uv.lock", "go.sum"}, Mode: policy.LockPrefer, Trust: true},
	} {
		if diff := cmp.Diff(want, mustParse(t, document).Lockfiles()); diff != "" {
			t.Errorf("%s%s", document, diff)
		}
	}
}
