package admission

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// lookalikes is a gazette that takes these names for imitations.
func lookalikes(names ...string) *gazette {
	g := &gazette{generation: "1", facts: map[string]advisory.Facts{}}
	for _, name := range names {
		g.facts[name] = advisory.Facts{Lookalike: &policy.Lookalike{Name: "popular", How: "one letter is added"}}
	}
	return g
}

// TestADependencyIsNotJudgedByItsLikeness: a name that an admitted release requires was
// not mistyped by whoever asks; one that nobody requires may have been.
func TestADependencyIsNotJudgedByItsLikeness(t *testing.T) {
	for _, remote := range []bool{false, true} {
		g := newGrove(t, "packages: { default: allow }", Limits{})
		g.config.Advisories = lookalikes("popular2", "popular3")
		if remote {
			g.door, _ = serve(t, g.Controller)
		}
		g.expect(t, false, node("popular2", "1.0.0"), node("popular3", "1.0.0"))
		if shown := g.page(t, "popular2", nil, "1.0.0"); shown != "" {
			t.Errorf("asked for by hand, popular2 shows %s", shown)
		}
		g.page(t, "root", map[string][]string{"1.0.0": {"popular2 ^1.0.0", "other ^1.0.0"}, "0.9.0": {"more *"}}, "0.9.0", "1.0.0")
		if shown := g.page(t, "popular2", nil, "1.0.0"); shown != "1.0.0" {
			t.Errorf("required by root, popular2 shows %q", shown)
		}
		g.expect(t, true, node("popular2", "1.0.0"))
		g.expect(t, false, node("popular3", "1.0.0"))

		// Where no list and no likeness matters, what releases require is not kept.
		if _, n := g.tenants.by["sb1"].ledger.Counts(); n != 1 {
			t.Errorf("%d requirements are kept", n)
		}
	}
}

// TestMetadataDeclares: Python's requirements are in the release's own metadata. Of one
// that is only shown they declare nothing: anybody can publish a requirement.
func TestMetadataDeclares(t *testing.T) {
	declares(t, wheel("root", "1.0"), true)
	sdist := wheel("root", "1.0")
	sdist.Name, sdist.Kind = "root-1.0.tar.gz", policy.KindSdist
	declares(t, sdist, false)
}

// declares has the metadata of a release read whose one file is this.
func declares(t *testing.T, release door.File, want bool) {
	t.Helper()
	g := newGrove(t, "packages: { default: allow }", Limits{})
	g.config.Advisories = lookalikes("popular2")
	refused := func() bool {
		a, err := g.Judge(t.Context(), judging("popular2", "1.0"))
		must(t, err)
		return a.Decision.Rule == "packages.similar_names"
	}
	if !refused() {
		t.Fatal("asked for by hand, it is not refused")
	}
	metadata := release
	metadata.Name, metadata.Kind = release.Name+".metadata", policy.KindMetadata
	_, err := g.Judge(t.Context(), door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: python("root", "1.0"), File: metadata, Release: &release, SourceURL: "https://files.example/m"}})
	must(t, err)
	must(t, g.Edges(t.Context(), "sb1", python("root", "1.0"), []door.Requirement{{Name: "popular2", Specifier: ">=1"}}))
	if refused() == want {
		t.Errorf("required by root, of which there is %s: refused %v", release.Name, refused())
	}
}

// TestAnAllowedTreeHasItsPreReleases: what npm's clients would install of a tree that the
// policy lets in, its page shows, and no other pre-release.
func TestAnAllowedTreeHasItsPreReleases(t *testing.T) {
	g := newGrove(t, "packages: { default: allow }", Limits{})
	versions := []string{"0.9.0", "1.0.0-beta.3", "1.0.0-beta.4"}
	if shown := g.page(t, "roll", nil, versions...); shown != "0.9.0" {
		t.Errorf("asked for by hand, roll shows %s", shown)
	}
	g.page(t, "root", map[string][]string{"1.0.0": {"roll 1.0.0-beta.3"}}, "1.0.0")
	if shown := g.page(t, "roll", nil, versions...); shown != "0.9.0 1.0.0-beta.3" {
		t.Errorf("required by root, roll shows %s", shown)
	}
	g.expect(t, true, node("roll", "1.0.0-beta.3"))
	g.expect(t, false, node("roll", "1.0.0-beta.4"))
}

// TestAPartComesWithItsPage: the page says which release a pre-release is a part of.
func TestAPartComesWithItsPage(t *testing.T) {
	g := newGrove(t, "packages: { default: allow }", Limits{})
	whole, part := node("codex", "0.1.0"), node("codex", "0.1.0-linux-x64")
	file := archive(part)
	file.PartOf = []string{whole.Version}
	ask := door.IndexAsk{Sandbox: "sb1", Package: pkgref.Ref{Ecosystem: pkgref.Node, Name: "codex"}, IndexDigest: "d", Files: []door.File{archive(whole), file, archive(node("codex", "0.2.0-rc.1"))}}
	a, err := g.Index(t.Context(), ask)
	must(t, err)
	for i, want := range []bool{true, true, false} {
		if d := a.Verdicts[a.OfFile[i]]; d.Allowed() != want {
			t.Errorf("%s: %+v", ask.Files[i].Version, d)
		}
	}
	got, err := g.Judge(t.Context(), door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: part, File: file, SourceURL: "https://npm.example/f"}})
	must(t, err)
	if !got.Decision.Allowed() {
		t.Errorf("the part itself: %+v", got.Decision)
	}
}
