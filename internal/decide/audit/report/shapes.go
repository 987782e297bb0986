package report

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
)

// shape is what records of files have in common; see index. Texts are numbers.
type shape struct {
	id, outcome, ecosystem, project, requested, version, host, sha256, resolvedBy, approval, locks int64

	first uint64
	flags int
}

// shapes yields those with an outcome that the terms select.
func (a *asking) shapes(ctx context.Context, judge func(shape) error, terms string, args []any, outcomes ...audit.Outcome) error {
	ids, err := a.outcomes(ctx, outcomes...)
	if err != nil {
		return err
	}
	rows, err := a.view.Query(ctx, `SELECT shape, outcome, ecosystem, package, requested, version, host, sha256, resolved_by, approval, locks, first, flags
		FROM shapes WHERE outcome IN `+index.Listed+" AND ("+terms+") ORDER BY shape", append([]any{index.List(ids)}, args...)...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	var all []shape    // read whole: a judge asks the view, too
	for rows.Next() {
		var s shape
		var first int64
		if err := rows.Scan(&s.id, &s.outcome, &s.ecosystem, &s.project, &s.requested, &s.version, &s.host, &s.sha256, &s.resolvedBy, &s.approval, &s.locks, &first, &s.flags); err != nil {
			return err
		}
		s.first = uint64(first)
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, s := range all {
		if err := judge(s); err != nil {
			return err
		}
	}
	return nil
}

// counted counts the records of shapes that are looked at.
func (a *asking) counted(ctx context.Context, shapes []int64) (records int, err error) {
	if len(shapes) == 0 {
		return 0, nil
	}
	if a.from == 0 && a.to == a.view.Next && a.narrowed == "" {
		_, err = a.view.Scan(ctx, "SELECT coalesce(sum(count), 0) FROM shapes WHERE shape IN "+index.Listed, []any{index.List(shapes)}, &records)
		return records, err
	}
	_, err = a.view.Scan(ctx, "SELECT count(*) FROM records WHERE shape <> 0 AND shape IN "+index.Listed+" AND "+a.terms,
		append([]any{index.List(shapes)}, a.args...), &records)
	return records, err
}

// list makes the table of the records that have a shape for which there is a
// reason, with the columns given and the reason.
func (a *asking) list(ctx context.Context, reasons map[int64]string, columns ...string) error {
	t := Table{Columns: append(append([]string{"record", "time", "run"}, columns...), "why"), Rows: []map[string]string{}}
	found := make([]int64, 0, len(reasons))
	for id := range reasons {
		found = append(found, id)
	}
	slices.Sort(found)
	var err error
	if a.report.Found, err = a.counted(ctx, found); err != nil || a.report.Found == 0 {
		a.report.Tables = append(a.report.Tables, t)
		return err
	}
	shapes, seqs, err := a.firstOf(ctx, found)
	if err != nil {
		return err
	}
	for r, err := range a.view.Records(ctx, seqs) {
		if err != nil {
			return err
		}
		row := cellsOf(r, t.Columns)
		row["why"] = reasons[shapes[r.Seq]]
		t.Rows = append(t.Rows, row)
	}
	a.report.Tables = append(a.report.Tables, t)
	return nil
}

// firstOf returns the first records of shapes, as many as a table may have.
func (a *asking) firstOf(ctx context.Context, found []int64) (shapes map[uint64]int64, seqs []uint64, err error) {
	limit := a.question.Limit
	if limit <= 0 {
		limit = -1
	}
	rows, err := a.view.Query(ctx, "SELECT seq, shape FROM records WHERE shape <> 0 AND shape IN "+index.Listed+" AND "+a.terms+" ORDER BY seq LIMIT ?",
		append(append([]any{index.List(found)}, a.args...), limit)...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	shapes = map[uint64]int64{}
	for rows.Next() {
		var seq, id int64
		if err := rows.Scan(&seq, &id); err != nil {
			return nil, nil, err
		}
		shapes[uint64(seq)] = id
		seqs = append(seqs, uint64(seq))
	}
	return shapes, seqs, rows.Err()
}

// erased stands for personal data that were erased.
const erased = "(erased)"

// cellsOf are columns of a record; those that it knows nothing of are left out.
func cellsOf(r audit.Record, columns []string) map[string]string {
	row := map[string]string{}
	for _, c := range columns {
		if text := cellOf(r, c); text != "" {
			row[c] = text
		}
	}
	return row
}

func cellOf(r audit.Record, column string) string {
	switch column {
	case "record":
		return strconv.FormatUint(r.Seq, 10)
	case "time":
		return r.Time.UTC().Format(time.RFC3339)
	case "run":
		return r.Run
	case "package":
		return packageName(r)
	case "version":
		return r.InstalledVersion
	case "requested":
		return requested(r)
	case "outcome":
		return string(r.Outcome)
	case "source":
		return r.SourceURL
	case "sha256":
		return r.SHA256
	case "resolved by":
		return r.ResolvedBy
	case "path":
		return r.Detail["path"]
	case "rule":
		return r.Rule
	case "reason":
		return r.Reason
	case "file":
		return r.File
	case "user":
		return personal(r, r.User)
	case "token":
		return r.OwnerToken()
	case "request":
		return r.Approval
	}
	return ""
}

// personal is a text that may have been erased.
func personal(r audit.Record, text string) string {
	if text == "" && r.Erased {
		return erased
	}
	return text
}

func packageName(r audit.Record) string {
	if r.Ecosystem == "" || r.Package == "" {
		return r.Package
	}
	return r.Ecosystem + " " + r.Package
}

func requested(r audit.Record) string {
	if r.RequestedVersion != "" && r.RequestedClaimed {
		return r.RequestedVersion + " (claimed)"
	}
	return r.RequestedVersion
}
