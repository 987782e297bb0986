package report

import (
	"context"
	"fmt"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
)

// unaccounted finds what the inventory of a sandbox shows and nobody served to it.
func unaccounted(ctx context.Context, a *asking) error {
	reasons := map[int64]string{}
	err := a.shapes(ctx, func(s shape) error {
		reasons[s.id] = "no decision about it is on record"
		if s.flags&index.FlagUnaccounted != 0 {
			reasons[s.id] = "nothing of it was served to the sandbox"
		}
		return nil
	}, "flags & ? <> 0 OR resolved_by = 0 AND flags & ? = 0", []any{index.FlagUnaccounted, index.FlagBrought}, audit.Installed)
	if err != nil {
		return err
	}
	if err := a.list(ctx, reasons, "package", "version", "path"); err != nil {
		return err
	}
	all, runs, err := a.weighed(ctx, false, true)
	if err != nil {
		return err
	}
	a.report.Verdict = fmt.Sprintf("Each of %s in %s was served before.", countOf(all, "install"), countOf(runs, "run"))
	if a.report.Found > 0 {
		a.report.Verdict = fmt.Sprintf("%s never served, of %s in %s.", formatCount(a.report.Found), countOf(all, "install"), countOf(runs, "run"))
	}
	return nil
}
