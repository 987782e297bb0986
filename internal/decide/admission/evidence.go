package admission

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// fileAsk puts an ask into the queue, with what the imported lists say of it for
// the person who answers.
func (k knowledge) fileAsk(ctx context.Context, w approval.Ask) (approval.Request, error) {
	w, err := k.describeAsk(w)
	if err != nil {
		return approval.Request{}, err
	}
	return k.config.Approvals.Ask(ctx, w)
}

// describeAsk adds to an ask what the imported lists say of the release.
func (k knowledge) describeAsk(w approval.Ask) (approval.Ask, error) {
	if k.config.Advisories == nil {
		w.Evidence.Unchecked = append(w.Evidence.Unchecked, "malware, vulnerabilities and popularity: this installation has no advisories and no lists")
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
		w.Evidence.Popularity = "it is on a list of popular packages"
	}
	if near := facts.Lookalike; near != nil {
		w.Evidence.Similar = near.Name + ": " + near.How
	}
	for _, m := range facts.Malware {
		if text := m.ID + " is about other releases of it"; !slices.Contains(w.Evidence.Advisories, text) {
			w.Evidence.Advisories = append(w.Evidence.Advisories, text)
		}
	}
	return k.describeVulnerabilities(w)
}

// describeVulnerabilities adds to an ask the known vulnerabilities of the release.
func (k knowledge) describeVulnerabilities(w approval.Ask) (approval.Ask, error) {
	project := w.Package.Project()
	known, err := k.config.Advisories.Vulnerabilities(project)
	if err != nil {
		return w, errUnknown(project, err)
	}
	if !known.Assessed {
		w.Evidence.Unchecked = append(slices.Clip(w.Evidence.Unchecked),
			"vulnerabilities: no database about "+string(project.Ecosystem)+" packages is imported (cofferdam advisory import)")
		return w, nil
	}
	var all []evidence.Vulnerability
	for _, one := range policy.VulnerabilitiesOf(w.Package, known.Known) {
		all = append(all, evidence.Vulnerability{ID: one.ID, Aliases: one.Aliases, Severity: one.Severity.String(), FixedIn: one.FixedIn})
	}
	w.Evidence.Vulnerabilities = evidence.NewVulnerabilities(known.Imported, all)
	return w, nil
}
