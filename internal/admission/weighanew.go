package admission

import (
	"context"
	"maps"

	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// weighAnew records again what a page withheld where something that was read later requires it: clients read
// a project's page once, for the first who requires it, and end at the last. A record that is
// not taken leaves the refusal as it was told.
func weighAnew(ctx context.Context, t *tenant) {
	withheld := map[pkgref.Ref]audit.Record{}
	var projects []pkgref.Ref
	for _, r := range t.book.Withheld() {
		if pull := r.Detail[records.DetailPull]; pull != "" && pull != string(ledger.PullUnmet) {
			projects = append(projects, records.ProjectOf(r))
			withheld[records.ProjectOf(r)] = r
		}
	}
	if len(projects) == 0 {
		return
	}
	for _, project := range t.ledger.Unmet(projects) {
		old := withheld[project]
		r := audit.Record{
			Kind: old.Kind, Outcome: old.Outcome, SourceURL: old.SourceURL, ResolvedBy: old.ResolvedBy, Rule: old.Rule, Reason: old.Reason,
			Approval: old.Approval, Withheld: old.Withheld, Detail: maps.Clone(old.Detail),
		}
		records.SetRef(&r, project)
		r.Detail[records.DetailPull] = string(ledger.PullUnmet)
		if _, err := t.book.Refuse(ctx, r); err != nil {
			return
		}
	}
}
