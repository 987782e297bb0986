package pkgref_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

func version(t *testing.T, e pkgref.Ecosystem, text string) pkgref.Version {
	t.Helper()
	v, ok := pkgref.ParseVersion(e, text)
	if !ok || !v.Readable() || v.String() != text {
		t.Fatalf("%s %q is %q, %v", e, text, v, ok)
	}
	return v
}

// The orders of the ecosystems, each list ascending.
func TestCompare(t *testing.T) {
	for e, ascending := range map[pkgref.Ecosystem][]string{
		pkgref.Python: {"latest", "1.0.dev1", "1.0rc1", "1.0", "1.0.post1", "1.10", "1!0.1"},
		pkgref.Node:   {"", "v1.0.0", "1.0.0-rc.1", "1.0.0-rc.10", "1.0.0", "1.10.0", "2.0.0"},
		pkgref.Go:     {"1.9.0", "v0.0.0-20200101000000-0123456789ab", "v1.2.0", "v1.10.0"},
		pkgref.Rust:   {"0.1", "0.1.0", "0.2.0"},
	} {
		for i, a := range ascending {
			for j, b := range ascending {
				want := 0
				if i != j {
					want = map[bool]int{true: -1, false: 1}[i < j]
				}
				if got := pkgref.Compare(e, a, b); got != want {
					t.Errorf("%s: %q and %q compare as %d; want %d", e, a, b, got, want)
				}
			}
		}
	}
}

// CompareSpelled is an order: of any three spellings, and only equal ones are equal.
func TestCompareSpelledIsAnOrder(t *testing.T) {
	texts := rapid.SampledFrom([]string{"", "x", "1", "1.0", "1.0.0", "v1.0.0", "1.0.0-rc.1", "1.0.0+a", "1.0.0+b", "1.0rc1", "1!0", "2.0.0", "v2.0.0"})
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(pkgref.Ecosystems()).Draw(t, "ecosystem")
		a, _ := pkgref.ParseVersion(e, texts.Draw(t, "a"))
		b, _ := pkgref.ParseVersion(e, texts.Draw(t, "b"))
		c, _ := pkgref.ParseVersion(e, texts.Draw(t, "c"))
		ab, bc := a.CompareSpelled(b), b.CompareSpelled(c)
		if ab != -b.CompareSpelled(a) || (ab == 0) != (a.String() == b.String()) {
			t.Fatalf("%q and %q compare as %d", a, b, ab)
		}
		if ab <= 0 && bc <= 0 && a.CompareSpelled(c) > 0 {
			t.Fatalf("%q, %q, %q", a, b, c)
		}
	})
}

func TestVersion(t *testing.T) {
	v := version(t, pkgref.Python, "1!2.3rc1")
	if v.Epoch() != 1 || v.Segment(0) != 2 || v.Segment(1) != 3 || v.Segment(7) != 0 || !v.PreRelease() || v.Stable() || !v.Canonical() {
		t.Error(v)
	}
	if v := version(t, pkgref.Python, "1.0-RC1"); v.Canonical() {
		t.Error("a spelling passes as canonical")
	}
	if !version(t, pkgref.Python, "1.0").Same(version(t, pkgref.Python, "1.0.0")) || version(t, pkgref.Node, "1.0.0").Same(version(t, pkgref.Node, "1.0.0+b")) {
		t.Error("Python's trailing zeros name no other release, npm's builds do")
	}
	if bad, ok := pkgref.ParseVersion(pkgref.Python, "latest"); ok || bad.Stable() || bad.Canonical() || bad.Same(bad) {
		t.Error("what can't be read names a release")
	}
	if !version(t, pkgref.Node, "1.2.3-linux-x64").SameNumbers(version(t, pkgref.Node, "1.2.3")) ||
		version(t, pkgref.Python, "1!1.0").SameNumbers(version(t, pkgref.Python, "1.0")) {
		t.Error("the numbers are the epoch and the first three")
	}
}

// A line of releases has an epoch in it: 1!1.0 is not of the line of 1.0.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		e                 pkgref.Ecosystem
		a, b              string
		major, compatible bool
	}{
		{pkgref.Python, "1.0", "1.9", true, true},
		{pkgref.Python, "1.0", "1!1.0", false, false},
		{pkgref.Python, "0.1", "0.2", true, true},
		{pkgref.Node, "0.1.0", "0.2.0", true, false},
		{pkgref.Node, "1.1.0", "1.2.0", true, true},
		{pkgref.Go, "v0.1.0", "v1.0.0", false, false},
	} {
		a, b := version(t, c.e, c.a), version(t, c.e, c.b)
		if major, compatible := a.Major() == b.Major(), a.Compatible() == b.Compatible(); major != c.major || compatible != c.compatible {
			t.Errorf("%s %s and %s: %v, %v", c.e, c.a, c.b, major, compatible)
		}
	}
}

func TestRange(t *testing.T) {
	for _, c := range []struct {
		e                       pkgref.Ecosystem
		text, version           string
		match, loose, takes, in bool // Match, MatchPreReleases, Takes, Covers
	}{
		{pkgref.Python, ">=1,<3", "2.0", true, true, false, true},
		{pkgref.Python, "<3", "3.0rc1", false, false, false, true},
		{pkgref.Python, ">=3.0rc1", "3.0rc2", true, true, true, true},
		{pkgref.Python, ">=3", "4.0rc2", true, true, false, true},
		{pkgref.Node, "^1.2.0", "1.3.0-rc.1", false, true, false, true},
		{pkgref.Node, "^1.2.0-rc.1", "1.2.0-rc.2", true, true, true, true},
		{pkgref.Node, "", "7.0.0", true, true, true, true},
		{pkgref.Go, ">=v1.2.0,<v2", "v1.9.0", true, true, false, true},
		{pkgref.Go, ">=v0.0.0-20200101000000-0123456789ab", "v0.0.0-20200101000000-0123456789ab", true, true, true, true},
		{pkgref.Rust, "<2", "2.0.0-rc.1", false, false, false, true},
	} {
		r, ok := pkgref.ParseRange(c.e, c.text)
		v := version(t, c.e, c.version)
		if !ok || r.Match(v) != c.match || r.MatchPreReleases(v) != c.loose || r.Takes(v) != c.takes || r.Covers(v) != c.in {
			t.Errorf("%s %q and %s: %v %v %v %v", c.e, c.text, c.version, r.Match(v), r.MatchPreReleases(v), r.Takes(v), r.Covers(v))
		}
	}
	for e, text := range map[pkgref.Ecosystem]string{pkgref.Python: "two", pkgref.Node: "latest", pkgref.Go: "^1", pkgref.Rust: "~1", "ruby": "1"} {
		if _, ok := pkgref.ParseRange(e, text); ok {
			t.Errorf("%s has a range %q", e, text)
		}
	}
	if !(pkgref.Range{}).Match(version(t, pkgref.Python, "1.0")) {
		t.Error("the zero value is not all")
	}
}

// AtMost goes by order in every ecosystem: npm's own ranges would take no pre-release.
func TestAtMost(t *testing.T) {
	for e, versions := range map[pkgref.Ecosystem][3]string{
		pkgref.Python: {"2.0", "1.9rc1", "2.0.post1"},
		pkgref.Node:   {"2.0.0", "1.9.0-rc.1", "2.0.1"},
		pkgref.Go:     {"v2.0.0", "v1.9.0-rc.1", "v2.0.1"},
		pkgref.Rust:   {"2.0.0", "1.9.0-rc.1", "2.0.1"},
	} {
		r, ok := pkgref.AtMost(e, versions[0])
		if !ok || r.SelectsPreReleases() || !r.Match(version(t, e, versions[0])) || !r.Match(version(t, e, versions[1])) || r.Match(version(t, e, versions[2])) {
			t.Errorf("%s: %v", e, versions)
		}
	}
}

func TestRelease(t *testing.T) {
	for in, want := range map[string]string{"1.0": "1", "1.0.0": "1", "1": "1", "0": "0", "0.0": "0", "1!2.0": "1!2", "1.0rc1": "1rc1", "1.0.post1": "1.post1", "10.10": "10.10"} {
		if got := (pkgref.Ref{Ecosystem: pkgref.Python, Name: "x", Version: in}).Release().Version; got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
