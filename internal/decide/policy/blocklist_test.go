package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// someNames are a package's in each ecosystem.
func someNames() map[pkgref.Ecosystem]string {
	return map[pkgref.Ecosystem]string{pkgref.Python: "a", pkgref.Node: "a", pkgref.Go: "mod.example/a", pkgref.Rust: "a"}
}

// failer is a test, or what rapid makes of one.
type failer interface{ Fatalf(string, ...any) }

// blocking is a policy that allows all but some versions of one package.
func blocking(t failer, ecosystem pkgref.Ecosystem, versions string) func(version string) bool {
	p, err := policy.Parse("p", fmt.Appendf(nil,
		"packages: { default: allow }\nallowed_packages: { %s: [ { name: %s, prereleases: true } ] }\nblocked_packages: { %s: [ { name: %s, version: %q } ] }\n",
		ecosystem, someNames()[ecosystem], ecosystem, someNames()[ecosystem], versions))
	if err != nil {
		t.Fatalf("%s: %v", versions, err)
	}
	kind := policy.KindPackage
	if ecosystem == pkgref.Python {
		kind = policy.KindWheel
	}
	return func(version string) bool {
		d := p.Decide(clock(), policy.Input{
			Subject:   policy.Subject{Package: pkgref.Ref{Ecosystem: ecosystem, Name: someNames()[ecosystem], Version: version}},
			FileFacts: policy.FileFacts{Kind: kind},
		})
		if d.ResolvedBy != policy.ByBlocklist && !d.Allowed() {
			t.Fatalf("%s: neither blocked nor allowed: %+v", version, d)
		}
		return d.ResolvedBy == policy.ByBlocklist
	}
}

// TestBlockedPreReleases: what leads to a blocked release is blocked, and so is
// what is below an upper bound.
func TestBlockedPreReleases(t *testing.T) {
	for _, tt := range []struct {
		ecosystem pkgref.Ecosystem
		versions  string
		blocked   string
		free      string
	}{
		{pkgref.Node, ">=1", "1.0.0-alpha 1.0.0 1.5.0-rc.1 9007199254740993.0.0", "0.9.9"},
		{pkgref.Node, ">=1.2.3", "1.2.3-0 1.2.3 1.2.4-a", "1.2.2 1.2.2-a"},
		{pkgref.Node, ">1", "2.0.0-alpha 2.0.0", "1.9.9 1.9.9-rc.1"},
		{pkgref.Node, "^1.2.3", "1.2.3-beta 1.9.0-rc.1", "2.0.0-rc.1 2.0.0 1.2.2"},
		{pkgref.Node, "1.x", "1.0.0-beta 1.9.0-rc.1", "2.0.0-rc.1 0.9.0"},
		{pkgref.Node, "1.2.3", "1.2.3-rc.1 1.2.3 1.2.3+b", "1.2.4-rc.1 1.2.2"},
		{pkgref.Node, "<2", "2.0.0-rc.1 1.9.9", "2.0.0"},
		{pkgref.Node, "<2.0.0", "2.0.0-rc.1", "2.0.0 2.0.1-rc.1"},
		{pkgref.Node, "<2.0.0-0", "1.9.9", "2.0.0-rc.1 2.0.0"},
		{pkgref.Node, "<=2", "2.9.9-rc.1 2.0.0", "3.0.0-rc.1"},
		{pkgref.Node, "1.0.0 - 2.0.0 || >=4", "1.0.0-a 2.0.0-a 4.0.0-a", "2.0.1-a 3.0.0"},
		{pkgref.Python, ">=1", "1.0a1 1.0.dev0 1.0rc1.post2 1.0", "0.9"},
		{pkgref.Python, "<3", "3.0rc1 3.0.dev1 2.9", "3.0 3.0.post1"},
		{pkgref.Python, "<3.dev0", "2.9", "3.0rc1 3.0.dev0"},
		{pkgref.Python, ">3", "3.0.post1 3.0+local 3.1.dev0", "3.0 3.0rc1"},
		{pkgref.Python, "==1.5", "1.5rc1 1.5.dev1 1.5 1.5.0 1.5+local", "1.5.post1 1.4"},
		{pkgref.Python, "===1.5", "1.5.0 1.5rc1", "1.5.1"},
		{pkgref.Python, "~=1.4.2", "1.4.2rc1 1.4.9.dev1", "1.5rc1 1.4.1"},
		{pkgref.Python, "==1.5.post1", "1.5.post1.dev2", "1.5 1.5rc1"},
		{pkgref.Go, ">=v1.2.3", "v1.2.3-0.20240101000000-abcdefabcdef v1.2.3-rc.1", "v1.2.2 v1.2.2-rc.1"},
		{pkgref.Go, "<v1.2.3", "v1.2.3-0.20240101000000-abcdefabcdef v1.2.2", "v1.2.3 v1.2.4-0.20240101000000-abcdefabcdef"},
		{pkgref.Rust, ">=1,<2", "1.0.0-alpha 2.0.0-rc.1", "2.0.0 0.9.0-rc.1"},
		{pkgref.Rust, "==1.2.*", "1.2.0-alpha", "1.3.0-alpha"},
		{pkgref.Rust, "==1.2.3", "1.2.3-alpha", "1.2.4-alpha"},
	} {
		blocked := blocking(t, tt.ecosystem, tt.versions)
		for version := range strings.FieldsSeq(tt.blocked) {
			if !blocked(version) {
				t.Errorf("%s %s leaves %s open", tt.ecosystem, tt.versions, version)
			}
		}
		for version := range strings.FieldsSeq(tt.free) {
			if blocked(version) {
				t.Errorf("%s %s blocks %s", tt.ecosystem, tt.versions, version)
			}
		}
	}
}

// TestBlocksHaveNoHoles: whatever is between two blocked versions is blocked; a
// pre-release of a blocked version is; and what is no pre-release is blocked
// when it is within the bounds, and only then.
func TestBlocksHaveNoHoles(t *testing.T) {
	for _, ecosystem := range pkgref.Ecosystems() {
		t.Run(string(ecosystem), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { checkBlock(rt, ecosystem) })
		})
	}
}

func checkBlock(rt *rapid.T, ecosystem pkgref.Ecosystem) {
	low, high := drawVersion(rt, ecosystem), drawVersion(rt, ecosystem)
	var bounds []string
	from := rapid.SampledFrom([]string{"", ">", ">="}).Draw(rt, "from")
	to := rapid.SampledFrom([]string{"", "<", "<="}).Draw(rt, "to")
	if from == "" && to == "" {
		from = ">="
	}
	if from != "" {
		bounds = append(bounds, from+low)
	}
	if to != "" {
		bounds = append(bounds, to+high)
	}
	separator := ","
	if ecosystem == pkgref.Node {
		separator = " "
	}
	blocked := blocking(rt, ecosystem, strings.Join(bounds, separator))
	order := orderOf(ecosystem)
	var versions []string
	for range 12 {
		versions = append(versions, drawVersion(rt, ecosystem))
	}
	versions = append(versions, low, high)
	for _, x := range versions {
		release, pre := cutPreRelease(ecosystem, x)
		if pre && blocked(release) && !blocked(x) {
			rt.Fatalf("%v blocks %s and not %s", bounds, release, x)
		}
		within := (from == "" || order(x, low) > 0 || from == ">=" && order(x, low) == 0) && (to == "" || order(x, high) < 0 || to == "<=" && order(x, high) == 0)
		if within && !blocked(x) || !pre && blocked(x) != within {
			rt.Fatalf("%v: %s is within them: %v, and is blocked: %v", bounds, x, within, blocked(x))
		}
		for _, y := range versions {
			for _, z := range versions {
				if order(x, y) < 0 && order(y, z) < 0 && blocked(x) && blocked(z) && !blocked(y) {
					rt.Fatalf("%v blocks %s and %s, and not %s between them", bounds, x, z, y)
				}
			}
		}
	}
}

// drawVersion makes versions that are near to each other.
func drawVersion(rt *rapid.T, ecosystem pkgref.Ecosystem) string {
	n := func() int { return rapid.IntRange(0, 2).Draw(rt, "number") }
	if ecosystem == pkgref.Python {
		suffix := rapid.SampledFrom([]string{"", "", "", "a1", "rc1", "rc1.dev2", "rc2.post1", ".dev0", ".post1", ".post1.dev3"}).Draw(rt, "suffix")
		return fmt.Sprintf("%d.%d%s", n(), n(), suffix)
	}
	suffix := rapid.SampledFrom([]string{"", "", "", "-0", "-alpha", "-alpha.1", "-rc.1", "-rc.10"}).Draw(rt, "suffix")
	if ecosystem == pkgref.Go {
		return fmt.Sprintf("v%d.%d.%d%s", rapid.IntRange(0, 1).Draw(rt, "major"), n(), n(), suffix)
	}
	return fmt.Sprintf("%d.%d.%d%s", n(), n(), n(), suffix)
}

// cutPreRelease takes the last part off that makes a version a pre-release.
func cutPreRelease(ecosystem pkgref.Ecosystem, version string) (release string, is bool) {
	if ecosystem != pkgref.Python {
		release, _, is = strings.Cut(version, "-")
		return release, is
	}
	if release, _, is = strings.Cut(version, ".dev"); is {
		return release, true
	}
	if i := strings.IndexAny(version, "ar"); i > 0 {
		return version[:i], true
	}
	return version, false
}

// orderOf is the order of the ecosystem's versions, as others know it.
func orderOf(ecosystem pkgref.Ecosystem) func(a, b string) int {
	if ecosystem == pkgref.Python {
		return func(a, b string) int {
			x, _ := pkgref.ParseVersion(pkgref.Python, a)
			y, _ := pkgref.ParseVersion(pkgref.Python, b)
			return x.Compare(y)
		}
	}
	return func(a, b string) int {
		return semver.Compare("v"+strings.TrimPrefix(a, "v"), "v"+strings.TrimPrefix(b, "v"))
	}
}
