package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
)

// approvals lists the answers to held requests, what else became of requests, and
// what each approval let in. Asks themselves are not listed: `run` has a run's.
func approvals(ctx context.Context, a *asking) error {
	seqs, err := a.answers(ctx)
	if err != nil {
		return err
	}
	let, err := a.admittedBy(ctx)
	if err != nil {
		return err
	}
	columns := []string{"record", "time", "request", "answer", "by", "package", "version", "scope", "expires", "let in", "digests", "reason"}
	t := Table{Columns: columns, Rows: []map[string]string{}}
	became := map[string]int{}
	for r, err := range a.view.Records(ctx, seqs) {
		if err != nil {
			return err
		}
		a.report.Found++
		became[answerText(r)]++
		if a.question.Limit > 0 && len(t.Rows) >= a.question.Limit {
			continue
		}
		t.Rows = append(t.Rows, answerRow(r, let[r.Approval]))
	}
	a.report.Tables = append(a.report.Tables, t)
	a.report.Verdict = "Nobody answered a held request, and none expired."
	if a.report.Found > 0 {
		var parts []string
		for _, what := range []string{"approved", "denied", "revoked", "expired", "superseded", "answer refused"} {
			if n := became[what]; n > 0 {
				parts = append(parts, formatCount(n)+" "+what)
			}
		}
		a.report.Verdict = fmt.Sprintf("%s of held requests: %s.", countOf(a.report.Found, "change"), strings.Join(parts, ", "))
	}
	return nil
}

// answerRow makes the row of an answer; let is what it let in, nil for nothing.
func answerRow(r audit.Record, let *admitted) map[string]string {
	row := cellsOf(r, []string{"record", "time", "request", "package", "version", "reason"})
	for column, text := range map[string]string{
		"answer": answerText(r), "by": answererText(r), "scope": r.Detail["scope"], "expires": r.Detail["expires"], "digests": r.Detail["digests"],
	} {
		if text != "" {
			row[column] = text
		}
	}
	if r.Outcome == audit.Approved {
		row["let in"] = "nothing"
		if let != nil {
			row["let in"] = fmt.Sprintf("%s in %s", countOf(let.files, "file"), countOf(let.runs, "run"))
		}
	}
	return row
}

// answers are the records of the queue that change a request, or tried to.
func (a *asking) answers(ctx context.Context) ([]uint64, error) {
	kind, err := a.view.ID(ctx, string(audit.KindApproval))
	if err != nil {
		return nil, err
	}
	outcomes, err := a.outcomes(ctx, audit.Approved, audit.Denied, audit.Expired, audit.Superseded, audit.Failed, audit.Blocked, audit.Exceeded)
	if err != nil {
		return nil, err
	}
	terms, args := a.terms, a.args
	if a.narrowed != "" {
		// An answer belongs to the runs that asked, and names none.
		ids, err := a.view.IDs(ctx, "SELECT DISTINCT approval FROM records WHERE approval <> 0 AND "+a.terms, a.args...)
		if err != nil {
			return nil, err
		}
		terms, args = "seq >= ? AND seq < ? AND approval IN "+index.Listed, []any{int64(a.from), int64(a.to), index.List(ids)}
	}
	return a.view.Seqs(ctx, "SELECT seq FROM records WHERE outcome IN "+index.Listed+" AND kind = ? AND "+terms+" ORDER BY seq",
		append([]any{index.List(outcomes), kind}, args...)...)
}

// answerText is what a record of the queue says, in a word or two.
func answerText(r audit.Record) string {
	switch event := r.Detail["event"]; event {
	case "refused":
		return "answer refused"
	case "revoked", "capped", "undone":
		return event
	}
	return string(r.Outcome)
}

// answererText is who answered.
func answererText(r audit.Record) string {
	switch answerText(r) {
	case "approved", "denied", "revoked", "answer refused":
		return personal(r, r.User)
	}
	return ""
}

// admitted is what an approval let in.
type admitted struct{ files, runs int }

func (a *asking) admittedBy(ctx context.Context) (map[string]*admitted, error) {
	served, err := a.view.ID(ctx, string(audit.Served))
	if err != nil {
		return nil, err
	}
	rows, err := a.view.Query(ctx, `SELECT text, count(*), count(DISTINCT run) FROM records JOIN texts ON texts.id = approval
		WHERE approval <> 0 AND +outcome = ? GROUP BY approval`, served)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	let := map[string]*admitted{}
	for rows.Next() {
		var id string
		l := &admitted{}
		if err := rows.Scan(&id, &l.files, &l.runs); err != nil {
			return nil, err
		}
		let[id] = l
	}
	return let, rows.Err()
}

// related are a run's records, and those of the queue about what it asked for.
func (a *asking) related(ctx context.Context) ([]uint64, error) {
	seqs, err := a.view.Seqs(ctx, "SELECT seq FROM records WHERE "+a.terms+" ORDER BY seq", a.args...)
	if err != nil {
		return nil, err
	}
	answers, err := a.answers(ctx)
	if err != nil {
		return nil, err
	}
	seqs = append(seqs, answers...)
	slices.Sort(seqs)
	return slices.Compact(seqs), nil
}
