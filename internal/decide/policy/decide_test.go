package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

const withEdges = `
packages: { default: allow }
allowed_packages:
  python:
    - { name: rich, version: ">=13,<14", with_dependencies: true }
    - { name: beta, with_dependencies: true, prereleases: true }
    - { name: plain }
    - { name: capped, max_version: "2.x" }
blocked_packages:
  python: [ { name: evil }, { name: partly, version: ">=2,<3" } ]
`

func edge(parent, through, name, specifier string) policy.Edge {
	if through != "" {
		through = "allowed_packages.python." + through
	}
	return policy.Edge{Parent: python(parent, "1.0"), Through: through, Name: name, Specifier: specifier}
}

func wheel(ref pkgref.Ref, edges ...policy.Edge) policy.Input {
	return policy.Input{Subject: policy.Subject{Package: ref, Edges: edges}, FileFacts: policy.FileFacts{Kind: policy.KindWheel}}
}

func TestEdges(t *testing.T) {
	p := mustParse(t, withEdges)
	denied := mustParse(t, withEdges[len("\npackages: { default: allow }"):])
	tests := []struct {
		name          string
		in            policy.Input
		effect        policy.Effect
		by            policy.ResolvedBy
		through, rule string
	}{
		{"within the specifier", wheel(python("idna", "2.5"), edge("rich", "rich", "idna", ">=2,<3")), "allow", "dependency", "rich", ".with_dependencies"},
		{"outside of it", wheel(python("idna", "3.0"), edge("rich", "rich", "idna", ">=2,<3")), "deny", "default", "", ""},
		{"a dependency's dependency", wheel(python("x", "1.0"), edge("idna", "rich", "x", "")), "allow", "dependency", "rich", ".with_dependencies"},
		{"an unreadable specifier", wheel(python("idna", "2.5"), edge("rich", "rich", "idna", "2.x")), "deny", "default", "", ""},
		{"no entry that admits", wheel(python("idna", "2.5"), edge("plain", "", "idna", "")), "deny", "default", "", ""},
		{"an entry without with_dependencies", wheel(python("idna", "2.5"), edge("plain", "plain", "idna", "")), "deny", "default", "", ""},
		{"an entry that is not there", wheel(python("idna", "2.5"), edge("plain", "nobody", "idna", "")), "deny", "default", "", ""},
		{"another name's edge", wheel(python("idna", "2.5"), edge("rich", "rich", "other", "")), "deny", "default", "", ""},
		{"its own edge", wheel(python("idna", "2.5"), edge("idna", "rich", "idna", "")), "deny", "default", "", ""},
		{"a pre-release", wheel(python("idna", "2.5rc1"), edge("rich", "rich", "idna", "")), "deny", "default", "", ""},
		{"a pre-release through an entry that has them", wheel(python("idna", "2.5rc1"), edge("beta", "beta", "idna", "")), "allow", "dependency", "beta", ".with_dependencies"},
		{"a cap of its own stands", wheel(python("capped", "3.0"), edge("rich", "rich", "capped", "")), "deny", "allowlist", "", ".max_version"},
		{"an entry of its own passes the entry on", wheel(python("capped", "2.0"), edge("rich", "rich", "capped", "")), "allow", "allowlist", "rich", ""},
		{"the blocklist stands", wheel(python("evil", "1.0"), edge("rich", "rich", "evil", "")), "deny", "blocklist", "", ""},
		{"a blocked range", wheel(python("partly", "2.0"), edge("rich", "rich", "partly", "")), "deny", "blocklist", "", ""},
		{"beside a blocked range", wheel(python("partly", "1.0"), edge("rich", "rich", "partly", "")), "allow", "dependency", "rich", ".with_dependencies"},
	}
	for _, tt := range tests {
		d := denied.Decide(clock(), tt.in)
		through := tt.through
		if through != "" {
			through = "allowed_packages.python." + through
		}
		if d.Effect != tt.effect || d.ResolvedBy != tt.by || d.Through != through {
			t.Errorf("%s: %+v", tt.name, d)
		}
		if len(tt.rule) > 0 && d.Rule[len(d.Rule)-len(tt.rule):] != tt.rule {
			t.Errorf("%s: rule %s", tt.name, d.Rule)
		}
	}
	if d := p.Decide(clock(), wheel(python("capped", "3.0"))); d.Effect != policy.Deny {
		t.Errorf("packages.default allows beyond an entry's cap: %+v", d)
	}
}

// TestRefusalNamesWhoWantedIt also when that parent's entry admits nothing.
func TestRefusalNamesWhoWantedIt(t *testing.T) {
	p := mustParse(t, "allowed_packages: { python: [ { name: plain } ] }")
	d := p.Decide(clock(), wheel(python("idna", "3.7"), edge("plain", "", "idna", ">=2"), edge("other", "", "idna", ">=4")))
	want := policy.Decision{
		Effect: policy.Deny, Rule: "packages.default", ResolvedBy: policy.ByDefault,
		Reason:   "idna is not on the allowlist; plain requires it",
		Suggest:  "allowed_packages:\n  python:\n    - name: idna\n      max_version: \"3.x\"\n",
		WantedBy: []policy.Edge{edge("plain", "", "idna", ">=2")},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
}

func TestBlockedIsNotSuggested(t *testing.T) {
	p := mustParse(t, "blocked_packages: { python: [ { name: evil }, { name: half, version: \"<2\" } ] }")
	for _, ref := range []pkgref.Ref{python("evil", "1.0"), python("half", "1.0")} {
		if d := p.Decide(clock(), wheel(ref)); d.ResolvedBy != policy.ByBlocklist || d.Suggest != "" {
			t.Errorf("%v: %+v", ref, d)
		}
	}
}

func TestReleaseAge(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		source    string
		published time.Time
		want      policy.Effect
	}{
		{"trusted", clock().Add(-7 * day), policy.Allow},
		{"trusted", clock().Add(-7*day + time.Second), policy.Deny},
		{"trusted", clock().Add(-7*day - time.Second), policy.Allow},
		{"trusted", clock().Add(-7 * day).In(time.FixedZone("", 5*3600)), policy.Allow},
		{"trusted", clock(), policy.Deny},
		{"trusted", clock().Add(time.Second), policy.Hold},
		{"trusted", time.Time{}, policy.Hold},
		{"trusted", time.Unix(0, 0), policy.Hold},
		{"first-seen", clock().Add(-900 * day), policy.Hold},
		{"ignore", time.Time{}, policy.Allow},
		{"ignore", clock().Add(time.Hour), policy.Allow},
	}
	for _, tt := range tests {
		p := mustParse(t, "packages: { min_release_age: 7d, age_source: "+tt.source+" }\nallowed_packages: { python: [ { name: a } ] }")
		in := wheel(python("a", "1.0"))
		in.Published = tt.published
		if d := p.Decide(clock(), in); d.Effect != tt.want {
			t.Errorf("%s, published %s: %+v", tt.source, tt.published, d)
		}
	}
}

// TestLockfileFailsClosed: a run that was not given the lockfile which the
// document names gets nothing of its ecosystem, the blocklist's reason first.
func TestLockfileFailsClosed(t *testing.T) {
	p := mustParse(t, `
packages: { default: allow, lockfile: { files: [sub/requirements-dev.txt, go.sum], mode: frozen, trust: true } }
allowed_packages: { python: [ { name: a, with_dependencies: true } ] }
blocked_packages: { python: [ { name: evil } ] }
`)
	for ref, want := range map[pkgref.Ref]string{
		python("a", "1.0"): "packages.lockfile",
		{Ecosystem: pkgref.Go, Name: "example.com/x", Version: "v1.0.0"}: "packages.lockfile",
		python("evil", "1.0"): "blocked_packages.python.evil",
		{Ecosystem: pkgref.Node, Name: "x", Version: "1.0.0"}: "packages.default",
	} {
		if d := p.Decide(clock(), wheel(ref)); d.Rule != want {
			t.Errorf("%v: %+v", ref, d)
		}
	}
	if len(p.Notes()) != 0 {
		t.Errorf("notes: %q", p.Notes())
	}
}

// TestName: before an index is fetched, only what could be allowed goes on.
func TestName(t *testing.T) {
	p := mustParse(t, withEdges[len("\npackages: { default: allow }"):])
	for name, want := range map[string]policy.Effect{
		"rich": policy.Allow, "evil": policy.Deny, "partly": policy.Deny, "idna": policy.Allow, "other": policy.Deny, "Rich": policy.Deny, "": policy.Deny,
	} {
		j := p.Judge(clock(), policy.Subject{Package: python(name, ""), Edges: []policy.Edge{edge("rich", "rich", "idna", "<2")}})
		if d := j.Name(); d.Effect != want {
			t.Errorf("%q: %+v", name, d)
		}
	}
}

func TestSpellingsAreOne(t *testing.T) {
	p := mustParse(t, "blocked_packages: { python: [ { name: Foo._-Bar } ], rust: [ { name: Some_Crate } ] }\npackages: { default: allow }")
	for ecosystem, names := range map[pkgref.Ecosystem][]string{
		pkgref.Python: {"foo-bar", "FOO.BAR", "foo_bar", "foo--bar"}, pkgref.Rust: {"some-crate", "some_crate", "SOME-crate"},
	} {
		for _, name := range names {
			ref, err := pkgref.New(ecosystem, name, "1.0.0")
			if err != nil {
				t.Fatal(err)
			}
			if d := p.Decide(clock(), wheel(ref)); d.ResolvedBy != policy.ByBlocklist {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
}

// bigIndex is like a real project's: three thousand versions, with two files
// each.
func bigIndex() []string {
	var versions []string
	for major := range 10 {
		for minor := range 30 {
			for patch := range 10 {
				versions = append(versions, fmt.Sprintf("%d.%d.%d", major, minor, patch))
			}
		}
	}
	return versions
}

func BenchmarkJudge3000(b *testing.B) {
	p, err := policy.Parse("p", []byte("packages: { min_release_age: 7d }\nallowed_packages: { python: [ { name: big, version: \">=2.3,<5,!=4.0.1\", max_version: \"4.x\" } ] }"))
	if err != nil {
		b.Fatal(err)
	}
	versions, published := bigIndex(), clock().Add(-30*24*time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		j := p.Judge(clock(), policy.Subject{Package: python("big", "")})
		for _, v := range versions {
			j.File(policy.FileFacts{Version: v, Kind: policy.KindWheel, Published: published})
			j.File(policy.FileFacts{Version: v, Kind: policy.KindSdist, Published: published})
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	p, err := policy.Parse("p", []byte(withEdges))
	if err != nil {
		b.Fatal(err)
	}
	in := wheel(python("rich", "13.0"))
	for b.Loop() {
		p.Decide(clock(), in)
	}
}
