package httpapi

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
)

// suggest turns what a run asked for, and was not let have, into a change of its policy;
// with the plans of that, into one by which all of it can be had.
func (s runRoutes) suggest(w http.ResponseWriter, r *http.Request) error {
	run := r.PathValue("run")
	if err := checkQueryKeys(r.URL.Query(), "plan"); err != nil {
		return err
	}
	if err := s.ownRun(r, run); err != nil {
		return err
	}
	source, digest, err := s.policyOf(r, run)
	if err != nil {
		return err
	}
	text, err := s.cfg.Sandboxes.PolicyText(digest)
	if err != nil {
		return err
	}
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	source = by.sourceName(source)
	roots, err := s.cfg.Door.Roots(r.Context(), run)
	if err != nil {
		return err
	}
	trials, err := s.trialsOf(r, r.URL.Query()["plan"])
	if err != nil {
		return err
	}
	wanted, left := wantedOf(&roots, trials)
	suggested, diff, err := policy.SuggestWanted(text, wanted)
	if err != nil {
		return err
	}
	if filepath.IsAbs(source) {
		diff = strings.Replace(diff, "--- policy\n+++ policy (suggested)\n", "--- "+source+"\n+++ "+source+"\n", 1)
	}
	out := api.Suggestion{Source: source, Document: text, Suggested: suggested, Diff: diff, Template: roots.Template, Left: left, Stays: roots.Stays, Roots: []api.SuggestedRoot{}}
	for _, root := range roots.Roots {
		p := root.Package
		out.Roots = append(out.Roots, api.SuggestedRoot{Ecosystem: string(p.Ecosystem), Name: p.Name, Version: p.Version, Asked: root.Asked, Served: root.Had})
	}
	return writeJSON(w, r, http.StatusOK, out)
}

// trial is one attempt to plan what a run asked for: what the plan chose, or else what it was refused.
type trial struct {
	releases []api.PlanRelease
	refused  *admission.Roots
}

// trialsOf are the caller's plans that these runs made, or could not make.
func (s runRoutes) trialsOf(r *http.Request, runs []string) ([]trial, error) {
	if len(runs) > maxKeptPlans {
		return nil, fault.Invalid("%d plans are named; at most %d", len(runs), maxKeptPlans)
	}
	var all []trial
	for _, run := range slices.Compact(slices.Sorted(slices.Values(runs))) {
		if err := s.ownRun(r, run); err != nil {
			return nil, err
		}
		answer := s.plans.lastPlan(run)
		if answer == nil {
			refused, err := s.cfg.Door.Roots(r.Context(), run)
			if err != nil {
				return nil, err
			}
			all = append(all, trial{refused: &refused})
			continue
		}
		var made api.Plan
		if err := json.Unmarshal(answer, &made); err != nil {
			return nil, err
		}
		all = append(all, trial{releases: made.Releases})
	}
	return all, nil
}

// wantedOf are what a policy should admit: the roots with all that they require, each in the
// version of the plan, and what the plans were refused all the same. Those that no entry of an
// allowlist lets in are left, a sentence each.
func wantedOf(roots *admission.Roots, trials []trial) (wanted []policy.Wanted, left []string) {
	var releases []api.PlanRelease
	whole := len(trials) > 0
	for _, t := range trials {
		releases = append(releases, t.releases...)
		if t.refused != nil {
			whole = false
			roots.Add(*t.refused)
		}
		if len(linesOf(t.releases)) > 0 {
			continue // what nothing requires here may be what these require
		}
		for _, r := range askedReleases(t.releases) {
			roots.Add(admission.Roots{Roots: []admission.Root{{Package: releaseRef(r)}}})
		}
	}
	if whole {
		dropBrought(roots, releases)
	}
	wanted = slices.Concat(wantedRoots(roots, releases), roots.Asking, roots.Lines)
	for _, w := range roots.Required {
		if !whole || isUnweighed(releases, w.Package) {
			wanted = append(wanted, w)
		}
	}
	for _, t := range trials {
		if lines := linesOf(t.releases); len(lines) > 0 {
			wanted = append(wanted, lines...)
			continue // what these require is refused as long as they are, as it is of those below
		}
		if len(askedReleases(t.releases)) > 0 {
			continue
		}
		more, stays := refusedOf(roots, t.releases)
		wanted, left = append(wanted, more...), append(left, stays...)
	}
	return wanted, left
}

// wantedRoots are the roots, which get the versions that plans chose of them.
func wantedRoots(roots *admission.Roots, releases []api.PlanRelease) (wanted []policy.Wanted) {
	for i := range roots.Roots {
		p := &roots.Roots[i].Package
		depth := -1
		for _, r := range releases {
			if r.Ecosystem == string(p.Ecosystem) && r.Name == p.Name && r.Effect != plan.EffectError && (depth < 0 || r.Depth < depth) {
				p.Version, depth = r.Version, r.Depth
			}
		}
		wanted = append(wanted, policy.Wanted{Package: *p, WithDependencies: true, Extras: roots.Roots[i].Extras})
	}
	return wanted
}

// dropBrought leaves out roots that no command named and that others of the plans bring.
func dropBrought(roots *admission.Roots, releases []api.PlanRelease) {
	roots.Roots = slices.DeleteFunc(roots.Roots, func(r admission.Root) bool { return r.Asked == "" && comesWithOthers(releases, r.Package) })
}

// comesWithOthers tells whether all that plans chose of a project is required by other releases of theirs, such as a package for
// one system by that which has one for each. It was refused before these were known, and needs no entry of its own.
func comesWithOthers(releases []api.PlanRelease, ref pkgref.Ref) bool {
	some := false
	for _, r := range releases {
		if releaseRef(r).Project() != ref.Project() {
			continue
		}
		if some = true; r.Depth == 0 || r.Effect == plan.EffectError {
			return false
		}
	}
	return some
}

// isUnweighed tells whether plans say nothing of a release of a package: then what the run was refused of it counts.
func isUnweighed(releases []api.PlanRelease, ref pkgref.Ref) bool {
	return slices.ContainsFunc(releases, func(r api.PlanRelease) bool {
		return r.Effect == plan.EffectError && releaseRef(r).Project() == ref.Project()
	})
}

// askedReleases are the releases of a plan that nothing in it requires, and that are refused for want of
// an entry that their decision suggests.
func askedReleases(releases []api.PlanRelease) (refused []api.PlanRelease) {
	for _, r := range releases {
		if r.Depth == 0 && r.Effect == plan.EffectDeny && r.Rule == "packages.default" && r.Suggest != "" {
			refused = append(refused, r)
		}
	}
	return refused
}

// linesOf are the entries that decisions suggest about a plan's releases that are refused although a list
// names them or a root brings them, as for the scripts that they run.
func linesOf(releases []api.PlanRelease) (wanted []policy.Wanted) {
	for _, r := range releases {
		refused := r.Effect == plan.EffectDeny || r.Effect == plan.EffectAllow && r.Would != ""
		if refused && !byAllowlist(r.Rule) && policy.AreEntries(r.Suggest) {
			wanted = append(wanted, policy.Wanted{Package: releaseRef(r).Project(), Lines: r.Suggest})
		}
	}
	return wanted
}

func releaseRef(r api.PlanRelease) pkgref.Ref {
	return pkgref.Ref{Ecosystem: pkgref.Ecosystem(r.Ecosystem), Name: r.Name, Version: r.Version}
}

// refusedOf are what an entry lets in of what a plan was refused, and sentences about the rest.
func refusedOf(roots *admission.Roots, releases []api.PlanRelease) (wanted []policy.Wanted, left []string) {
	for _, r := range releases {
		ref := releaseRef(r)
		isRoot := slices.ContainsFunc(roots.Roots, func(root admission.Root) bool { return root.Package == ref })
		switch {
		case r.Effect == plan.EffectAllow && r.Would == "" || r.Effect == plan.EffectHold || isRoot && isLifted(r):
		case isLifted(r):
			wanted = append(wanted, policy.Wanted{Package: ref})
		default:
			left = append(left, ref.String()+": "+r.Reason)
		}
	}
	return wanted, left
}

// isLifted tells whether a release is refused for want of an entry, and its decision suggests one: for a name that is near
// to a popular one none does, and nobody is led to add it.
func isLifted(r api.PlanRelease) bool { return byAllowlist(r.Rule) && r.Suggest != "" }

// byAllowlist tells whether a refusal is one that an entry of the allowlist lifts.
func byAllowlist(rule string) bool {
	return rule == "packages.default" || rule == "packages.prereleases" || strings.HasPrefix(rule, "allowed_packages.")
}

// policyOf finds a run's policy in the log.
func (s runRoutes) policyOf(r *http.Request, run string) (source, digest string, err error) {
	for rec, err := range s.cfg.Log.Records(r.Context(), audit.Filter{Run: run, Kinds: []audit.Kind{audit.KindSandbox}}) {
		if err != nil {
			return "", "", err
		}
		if rec.Policy != "" {
			return rec.Detail["policy_source"], rec.Policy, nil
		}
	}
	return "", "", fault.New(fault.ErrNotFound, "there is no run %q on record", run)
}
