package admission

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/approval"
)

// file puts an ask into the queue, with what the imported lists say of it for
// the person who answers.
func (k knowledge) file(ctx context.Context, w approval.Ask) (approval.Request, error) {
	w, err := k.describe(w)
	if err != nil {
		return approval.Request{}, err
	}
	return k.config.Approvals.Ask(ctx, w)
}

// describe adds to an ask what the imported lists say of the release.
func (k knowledge) describe(w approval.Ask) (approval.Ask, error) {
	if k.config.Advisories == nil {
		w.Evidence.Unchecked = append(w.Evidence.Unchecked, "malware and popularity: this installation has no advisories and no lists")
		return w, nil
	}
	if known, tells := k.config.Advisories.(advisory.Coverage); tells && !known.CoversMalware(w.Package.Ecosystem) {
		w.Evidence.Unchecked = append(slices.Clip(w.Evidence.Unchecked), "malware: no advisories about "+string(w.Package.Ecosystem)+" packages are imported (cofferdam advisory import)")
	}
	project := w.Package
	project.Version = ""
	facts, err := k.config.Advisories.Facts(project)
	if err != nil {
		return w, errUnknown(project, err)
	}
	if facts.Popular {
		w.Evidence.Popularity = "it is on an imported list of popular packages"
	}
	if near := facts.Lookalike; near != nil {
		w.Evidence.Similar = near.Name + ": " + near.How
	}
	for _, m := range facts.Malware {
		if text := m.ID + " is about other releases of it"; !slices.Contains(w.Evidence.Advisories, text) {
			w.Evidence.Advisories = append(w.Evidence.Advisories, text)
		}
	}
	return w, nil
}
