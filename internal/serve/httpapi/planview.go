package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/planning"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
)

// viewPlan returns a plan as it is told, in the order of the tree.
func viewPlan(run string, weighed planning.Plan, notes []string) api.Plan {
	out := api.Plan{Run: run, Notes: slices.Clone(notes)}
	for _, p := range weighed.Tree() {
		out.Releases = append(out.Releases, viewRelease(p.Weighed, p.Depth))
	}
	if len(weighed.Read) > 0 {
		out.Notes = append(out.Notes, "the resolver also read "+listed(weighed.Read)+", which are not among the releases above; a build may need them")
	}
	return out
}

// listed names a few releases.
func listed(refs []pkgref.Ref) string {
	const most = 10
	var names []string
	for _, r := range refs[:min(len(refs), most)] {
		names = append(names, r.Name+" "+r.Version)
	}
	if len(refs) > most {
		names = append(names, fmt.Sprintf("%d more", len(refs)-most))
	}
	return strings.Join(names, ", ")
}

func viewRelease(w *planning.Weighed, depth int) api.PlanRelease {
	out := api.PlanRelease{
		Ecosystem: string(w.Package.Ecosystem), Name: w.Package.Name, Version: w.Package.Version, Depth: depth,
		Effect: string(w.Verdict.Effect), Would: string(w.Verdict.Would), Rule: w.Verdict.Rule, Reason: w.Verdict.Reason, Suggest: w.Verdict.Suggest,
		Approval: w.Approval, Group: w.Group,
	}
	if out.Effect != plan.EffectAllow && out.Effect != plan.EffectHold {
		out.Effect = plan.EffectDeny
	}
	if w.Problem != "" {
		out.Effect, out.Would, out.Reason, out.Suggest = plan.EffectError, "", w.Problem, ""
	}
	for _, by := range w.WantedBy {
		out.WantedBy = append(out.WantedBy, by.Text(w.Package))
	}
	if len(w.Files) == 0 {
		return out
	}
	f := w.Files[0]
	out.File, out.Kind, out.Size, out.Scripts = f.Name, f.Kind, f.Size, f.Scripts
	if len(f.Digests) > 0 {
		out.Digest = f.Digests[0]
	}
	if !f.Published.IsZero() {
		out.Published = f.Published.UTC().Format(time.RFC3339)
	}
	return out
}
