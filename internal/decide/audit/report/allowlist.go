package report

import (
	"context"
	"fmt"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// offAllowlist finds what was served or installed though no list names it. A release that a policy
// lets in by its default, or as a toolchain, is named by nobody, so it is found, too.
func offAllowlist(ctx context.Context, a *asking) error {
	approved, err := a.approved(ctx)
	if err != nil {
		return err
	}
	served, err := a.view.ID(ctx, string(audit.Served))
	if err != nil {
		return err
	}
	cleared, err := a.cleared(ctx)
	if err != nil {
		return err
	}
	reasons := map[int64]string{}
	err = a.shapes(ctx, func(s shape) error {
		by, err := a.textByID(ctx, s.resolvedBy)
		if err != nil {
			return err
		}
		if why := whyNotCleared(s, by); why != "" {
			reasons[s.id] = why
			return nil
		}
		at, known := approved[s.approval]
		if by == string(policy.ByApproval) && s.outcome == served && (!known || at > s.first) {
			reasons[s.id] = "no approval of it is on record before"
		}
		return nil
	}, "resolved_by NOT IN "+index.Listed, []any{index.List(cleared)}, audit.Served, audit.Installed)
	if err != nil {
		return err
	}
	if err := a.list(ctx, reasons, "outcome", "package", "version", "resolved by", "sha256"); err != nil {
		return err
	}
	return allowlistVerdict(ctx, a)
}

func allowlistVerdict(ctx context.Context, a *asking) error {
	files, _, err := a.weighed(ctx, true, false)
	if err != nil {
		return err
	}
	both, runs, err := a.weighed(ctx, true, true)
	if err != nil {
		return err
	}
	installs := both - files
	among := fmt.Sprintf("%s and %s of %s", countOf(files, "served file"), countOf(installs, "install"), countOf(runs, "run"))
	a.report.Verdict = "Nothing off the allowlist in " + among + "."
	if a.report.Found > 0 {
		a.report.Verdict = fmt.Sprintf("%s off the allowlist in %s.", formatCount(a.report.Found), among)
	}
	return nil
}

// cleared are the steps that clear what they let in, as numbers, but for the
// approval, whose record is looked for.
func (a *asking) cleared(ctx context.Context) ([]int64, error) {
	var ids []int64
	for _, step := range []policy.ResolvedBy{policy.ByAllowlist, policy.ByDependency, policy.ByLockfile} {
		id, err := a.view.ID(ctx, string(step))
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// whyNotCleared says why a step of the policy does not clear what it let in, "" if it does.
func whyNotCleared(s shape, resolvedBy string) string {
	switch policy.ResolvedBy(resolvedBy) {
	case policy.ByAllowlist, policy.ByDependency, policy.ByLockfile, policy.ByApproval:
		return ""
	case policy.ByDefault:
		return "packages.default let it in; no list names it"
	case policy.ByToolchain:
		return "packages.toolchains let it in; no list names it"
	case policy.ByObserving:
		return "the policy only observed, and would have refused it"
	case policy.BySystem:
		return "packages.system let it in; no list names it"
	case policy.ByBlocklist, policy.ByAdvisory, policy.ByNamespace, policy.ByRule, policy.ByIntegrity, policy.ByCanonical, policy.ByNetwork, policy.ByVulnerability:
		return "resolved by " + resolvedBy + ", which lets nothing in"
	case "":
		if s.flags&index.FlagBrought != 0 {
			return "" // inside of a release that was judged with it, or from no registry
		}
		return "nothing was decided about it: it was never served"
	}
	return "resolved by " + resolvedBy + ", which clears nothing"
}

// approved has, by the number of a request's id, the record of its first approval.
func (a *asking) approved(ctx context.Context) (map[int64]uint64, error) {
	kind, err := a.view.ID(ctx, string(audit.KindApproval))
	if err != nil {
		return nil, err
	}
	outcome, err := a.view.ID(ctx, string(audit.Approved))
	if err != nil {
		return nil, err
	}
	rows, err := a.view.Query(ctx, "SELECT approval, min(seq) FROM records WHERE outcome = ? AND kind = ? GROUP BY approval", outcome, kind)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	first := map[int64]uint64{}
	for rows.Next() {
		var id, seq int64
		if err := rows.Scan(&id, &seq); err != nil {
			return nil, err
		}
		first[id] = uint64(seq)
	}
	return first, rows.Err()
}
