package policy_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestEntriesForRequirements: an entry for a requirement admits what that names, also a pre-release, and no other one; what can be
// no entry's version is none.
func TestEntriesForRequirements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of        pkgref.Ref
		specifier string
		admits    []string
		refuses   []string
	}{
		"npm, a pre-release":    {pkgref.Ref{Ecosystem: pkgref.Node, Name: "typescript"}, "5.6.1-rc", []string{"5.6.1-rc"}, []string{"5.6.2-rc", "7.1.0-dev.1"}},
		"npm, another major":    {pkgref.Ref{Ecosystem: pkgref.Node, Name: "debug"}, "~2.6.9", []string{"2.6.9"}, []string{"2.7.0", "2.6.10-beta.1", "3.0.0"}},
		"python, a pre-release": {pkgref.Ref{Ecosystem: pkgref.Python, Name: "own"}, "==0.65b0", []string{"0.65b0"}, []string{"0.65b1", "0.66a1"}},
		"go, a commit":          {pkgref.Ref{Ecosystem: pkgref.Go, Name: "a.example/b"}, ">=v0.0.0-20200101000000-abcdefabcdef", []string{"v0.0.0-20200101000000-abcdefabcdef"}, []string{"v0.0.0-20210101000000-abcdefabcdef", "v2.0.0-rc.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, err := policy.Parse("p", []byte("allowed_packages:\n  "+string(c.of.Ecosystem)+":\n    - {name: "+c.of.Name+", version: \">=4\", with_dependencies: true}\n"))
			if err != nil {
				t.Fatal(err)
			}
			lines := policy.Required(before, c.of, []string{"not a range !", c.specifier, ""})
			after, err := policy.Parse("p", []byte(lines))
			if err != nil || !policy.AreEntries(lines) {
				t.Fatalf("%q: %v", lines, err)
			}
			judge := after.Judge(clock(), policy.Subject{Package: c.of, Assessed: true})
			for _, v := range c.admits {
				if d := judge.Release(v); d.Effect != policy.Allow {
					t.Errorf("%s is refused under\n%s%s", v, lines, d.Reason)
				}
			}
			for _, v := range c.refuses {
				if d := judge.Release(v); d.Effect == policy.Allow {
					t.Errorf("%s is let in under\n%s", v, lines)
				}
			}
		})
	}
}

// TestNoEntryForAllLaterPreReleases: of a requirement that is open upwards no entry is made that lets in pre-releases.
func TestNoEntryForAllLaterPreReleases(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse("p", []byte("name: p\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, specifier := range []string{">=1.0b1", ">1.0b1", "~=1.0b1", ">=1.0b1,<2", "==1.0b1,>=0"} {
		if lines := policy.Required(p, pkgref.Ref{Ecosystem: pkgref.Python, Name: "own"}, []string{specifier}); lines != "" {
			t.Errorf("%s:\n%s", specifier, lines)
		}
	}
}
