package report

import (
	"context"
	"fmt"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
)

// alarms finds the records that audit.Record.IsAlarm says are alarms.
func alarms(ctx context.Context, a *asking) error {
	seqs, err := a.view.Seqs(ctx, "SELECT seq FROM records WHERE flags & ? <> 0 AND "+a.terms+" ORDER BY seq", append([]any{index.FlagAlarm}, a.args...)...)
	if err != nil {
		return err
	}
	a.report.Found = len(seqs)
	if most := a.question.Limit; most > 0 && len(seqs) > most {
		seqs = seqs[:most]
	}
	if err := a.listRecords(ctx, seqs, "user", "token", "what", "outcome", "rule", "reason"); err != nil {
		return err
	}
	a.report.Verdict = "No alarm."
	if a.report.Found > 0 {
		a.report.Verdict = fmt.Sprintf("%s on record.", countOf(a.report.Found, "alarm"))
	}
	return nil
}

// listRecords makes the table of records by their numbers.
func (a *asking) listRecords(ctx context.Context, seqs []uint64, columns ...string) error {
	t := Table{Columns: append([]string{"record", "time", "run"}, columns...), Rows: []map[string]string{}}
	if len(seqs) > 0 {
		for r, err := range a.view.Records(ctx, seqs) {
			if err != nil {
				return err
			}
			t.Rows = append(t.Rows, pageCells(r, t.Columns))
		}
	}
	a.report.Tables = append(a.report.Tables, t)
	return nil
}
