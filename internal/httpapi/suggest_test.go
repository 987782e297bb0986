package httpapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
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
		return api.PlanRelease{Ecosystem: "node", Name: name, Version: version, Effect: effect, Rule: rule, Depth: depth, Reason: "why " + name}
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
