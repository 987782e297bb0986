package admission

import (
	"context"
	"maps"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// weighing is what was there when a run's refusals were weighed last. Safe for concurrent use.
type weighing struct {
	mu   sync.Mutex // guards last
	last [3]int
}

// noteCounts notes how much was read and withheld, and tells whether that has changed, so
// that a command that does nothing costs nothing.
func (w *weighing) noteCounts(l *ledger.Ledger, withheld int) bool {
	edges, requirements := l.Counts()
	now := [3]int{edges, requirements, withheld}
	w.mu.Lock()
	defer w.mu.Unlock()
	isNew := now != w.last
	w.last = now
	return isNew
}

// explainUnmet has a record of what a page withholds say which versions are required that it does not show, and suggest
// entries for these where entries of the name, or its pre-releases, leave them out: what the page withholds first is another
// version, which may be wanted by nobody.
func explainUnmet(r *audit.Record, p *policy.Policy, unmet []string) {
	if len(unmet) == 0 || r.Detail[records.DetailWhat] != records.WhatIndex || r.Rule != rulePrereleases && !strings.HasPrefix(r.Rule, "allowed_packages.") {
		return
	}
	r.Detail[records.DetailWants] = redact.Cut(strings.Join(unmet, records.WantsBetween), 1_024)
	if lines := policy.Required(p, records.ProjectOf(*r), unmet); lines != "" && len(lines) <= maxLines { // a part of an entry is another entry
		r.Detail[records.DetailSuggest] = lines
	}
}

// maxLines bounds the entries that are suggested of one page, in bytes.
const maxLines = 4_096

// rulePrereleases is policy's rule of pre-releases that no entry admits.
const rulePrereleases = "packages.prereleases"

// weighAnew records again what a page withheld where something that was read later requires it: clients read
// a project's page once, for the first who requires it, and end at the last. A record that is
// not taken leaves the refusal as it was told.
func weighAnew(ctx context.Context, t *tenant) {
	withheld, whole := map[pkgref.Ref]audit.Record{}, map[pkgref.Ref]bool{}
	var projects []pkgref.Ref
	for _, r := range t.book.Withheld() {
		pull, isAlarm := r.Detail[records.DetailPull], r.Detail[records.DetailAlarm] != "" // an alarm is a cause as it is
		if pull != "" && pull != string(ledger.PullUnmet) && !isAlarm {
			project := records.ProjectOf(r)
			projects = append(projects, project)
			withheld[project], whole[project] = r, r.Detail[records.DetailWhat] != records.WhatIndex
		}
	}
	if len(projects) == 0 || !t.weighed.noteCounts(t.ledger, len(projects)) {
		return
	}
	lacking := t.ledger.Unmet(projects, whole)
	for _, project := range projects { // in the order of their records
		unmet, is := lacking[project]
		if !is {
			continue
		}
		delete(lacking, project)
		old := withheld[project]
		r := audit.Record{
			Kind: old.Kind, Outcome: old.Outcome, RequestedVersion: old.RequestedVersion, SourceURL: old.SourceURL, ResolvedBy: old.ResolvedBy, Rule: old.Rule, Reason: old.Reason,
			Approval: old.Approval, Withheld: old.Withheld, Detail: maps.Clone(old.Detail),
		}
		records.SetRef(&r, project)
		r.Detail[records.DetailPull] = string(ledger.PullUnmet)
		explainUnmet(&r, t.policy(), unmet)
		if _, err := t.book.Refuse(ctx, r); err != nil {
			return
		}
	}
}
