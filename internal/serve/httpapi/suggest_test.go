package httpapi

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// A plan tells the version of a root, and what else has to be let in; what no entry helps
// is told.
func TestWhatAPlanWants(t *testing.T) {
	t.Parallel()
	node := func(name, version string) pkgref.Ref {
		return pkgref.Ref{Ecosystem: pkgref.Node, Name: name, Version: version}
	}
	of := func() *admission.Roots {
		return &admission.Roots{
			Roots:    []admission.Root{{Package: node("express", "")}},
			Required: []policy.Wanted{{Package: node("ms", "2.0.0"), Through: []pkgref.Ref{node("express", "")}}},
		}
	}
	root := policy.Wanted{Package: node("express", ""), WithDependencies: true}
	wanted, left := wantedOf(of(), nil)
	if diff := cmp.Diff([]policy.Wanted{root, of().Required[0]}, wanted); diff != "" || left != nil {
		t.Errorf("without a plan: %s %v", diff, left)
	}
	release := func(name, version, effect, rule string, depth int) api.PlanRelease {
		return api.PlanRelease{Ecosystem: "node", Name: name, Version: version, Effect: effect, Rule: rule, Depth: depth, Reason: "why " + name, Suggest: "an entry"}
	}
	roots := of()
	wanted, left = wantedOf(roots, []trial{{releases: []api.PlanRelease{
		release("express", "4.0.0", "allow", "", 1), release("express", "5.1.0", "allow", "", 0), release("ms", "2.1.3", "allow", "", 1),
		release("odd", "1.0.0", "deny", "packages.default", 1), release("young", "1.0.0", "deny", "packages.min_release_age", 1), release("lie", "1.0.0", "error", "", 0),
	}}})
	root.Package.Version = "5.1.0"
	if diff := cmp.Diff([]policy.Wanted{root, {Package: node("odd", "1.0.0")}}, wanted); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"node young 1.0.0: why young", "node lie 1.0.0: why lie"}, left); diff != "" {
		t.Error(diff)
	}
	if roots.Roots[0].Package.Version != "5.1.0" {
		t.Errorf("%+v", roots.Roots)
	}
}

// A plan may be refused a release for something that an entry may have beside its versions, as its scripts: the lines that
// the decision suggests let it in. A package that nothing in that plan requires may be one that such a release requires,
// and gets no entry until a plan was made with it.
func TestWhatAPlanWantsByLines(t *testing.T) {
	t.Parallel()
	lines := "allowed_packages:\n  node:\n    - name: esbuild\n      max_version: \"0.x\"\n      install_scripts: true\n"
	esbuild := pkgref.Ref{Ecosystem: pkgref.Node, Name: "esbuild"}
	release := api.PlanRelease{Ecosystem: "node", Name: "esbuild", Version: "0.25.12", Depth: 2, Effect: "deny", Rule: "packages.install_scripts", Suggest: lines}
	orphan := api.PlanRelease{Ecosystem: "node", Name: "@esbuild/linux-x64", Version: "0.25.12", Effect: "deny", Rule: "packages.default", Suggest: "allowed_packages: {}"}
	wanted, left := wantedOf(&admission.Roots{}, []trial{{releases: []api.PlanRelease{release, orphan}}})
	if diff := cmp.Diff([]policy.Wanted{{Package: esbuild, Lines: lines}}, wanted); diff != "" || left != nil {
		t.Errorf("%s; left %v", diff, left)
	}
	for _, none := range []string{"", "packages:\n  install_scripts: allow\n"} { // which hold for more than this release
		release.Suggest = none
		if wanted, left = wantedOf(&admission.Roots{}, []trial{{releases: []api.PlanRelease{release}}}); wanted != nil || len(left) != 1 {
			t.Errorf("by %q: %v, left %v", none, wanted, left)
		}
	}
	release.Suggest, release.Effect = lines, "hold"
	if wanted, left = wantedOf(&admission.Roots{}, []trial{{releases: []api.PlanRelease{release}}}); wanted != nil || left != nil {
		t.Errorf("what waits for a person: %v, left %v", wanted, left)
	}
}

// Nobody is led to an entry for a name that is near to a popular one, and a plan leads nobody either, whoever in it
// requires that: its decision suggests none.
func TestAPlanLeadsToNoLookalike(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{"packages.default", "packages.prereleases", "packages.similar_names", "packages.install_scripts", "packages.toolchains"} {
		for depth := range 2 {
			near := api.PlanRelease{Ecosystem: "node", Name: "react-domm", Version: "1.0.0", Depth: depth, Effect: "deny", Rule: rule, Reason: "it looks like react-dom"}
			roots := admission.Roots{}
			wanted, left := wantedOf(&roots, []trial{{releases: []api.PlanRelease{near}}})
			if wanted != nil || roots.Roots != nil || len(left) != 1 {
				t.Errorf("by %s, %d deep: wanted %v, roots %v, left %v", rule, depth, wanted, roots.Roots, left)
			}
		}
	}
}

// A plan that says nothing of some of its releases says nothing of what the run was refused of them: that stays wanted, as
// it was in the trial.
// A package that the run was refused before it was known what requires it gets no entry of its own where a plan shows that others
// bring it: neither one for this machine's system, nor any other. A package that a command named, or that nothing requires, stays a root.
func TestWhatOthersBringIsNoRoot(t *testing.T) {
	t.Parallel()
	node := func(name string) pkgref.Ref { return pkgref.Ref{Ecosystem: pkgref.Node, Name: name} }
	releases := []api.PlanRelease{
		{Ecosystem: "node", Name: "esbuild", Version: "0.25.0", Effect: "allow", Depth: 0},
		{Ecosystem: "node", Name: "@esbuild/linux-x64", Version: "0.25.0", Effect: "allow", Depth: 1},
		{Ecosystem: "node", Name: "ms", Version: "2.1.3", Effect: "allow", Depth: 1},
		{Ecosystem: "node", Name: "twice", Version: "1.0.0", Effect: "allow", Depth: 1},
		{Ecosystem: "node", Name: "twice", Version: "2.0.0", Effect: "allow", Depth: 0},
	}
	roots := func() *admission.Roots {
		return &admission.Roots{Roots: []admission.Root{
			{Package: node("esbuild")}, {Package: node("@esbuild/linux-x64")}, {Package: node("ms"), Asked: "ms@2"}, {Package: node("twice")}, {Package: node("unseen")},
		}}
	}
	names := func(trials ...trial) (names []string) {
		wanted, _ := wantedOf(roots(), trials)
		for _, w := range wanted {
			names = append(names, w.Package.Name)
		}
		return names
	}
	if got, want := names(trial{releases: releases}), []string{"esbuild", "ms", "twice", "unseen"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	refused := trial{refused: &admission.Roots{}}
	if got := names(trial{releases: releases}, refused); len(got) != 5 {
		t.Errorf("though a plan could not be made: %q", got)
	}
}

func TestWhatIsNotWeighedStaysWanted(t *testing.T) {
	t.Parallel()
	ms := policy.Wanted{Package: pkgref.Ref{Ecosystem: pkgref.Node, Name: "ms", Version: "2.0.0"}}
	for effect, want := range map[string][]policy.Wanted{"allow": nil, "error": {ms}} {
		releases := []api.PlanRelease{{Ecosystem: "node", Name: "ms", Version: "2.0.0", Effect: effect}}
		wanted, _ := wantedOf(&admission.Roots{Required: []policy.Wanted{ms}}, []trial{{releases: releases}})
		if diff := cmp.Diff(want, wanted); diff != "" {
			t.Errorf("%s: %s", effect, diff)
		}
	}
}
