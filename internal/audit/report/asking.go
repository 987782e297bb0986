package report

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/audit/index"
)

// asking is one report while it is made.
type asking struct {
	config   Config
	question Question
	view     *index.View
	report   api.AuditReport

	from, to     uint64 // records from from on, before to
	since, until time.Time
	terms        string // what selects records besides their kind
	args         []any

	texts     map[int64]string
	baselines map[int64]Baseline
}

// begin finds the records that are looked at.
func (a *asking) begin(ctx context.Context) error {
	var err error
	if a.from, a.to, err = a.view.Between(ctx, a.question.Since, a.question.Until); err != nil {
		return err
	}
	a.terms, a.args = "seq >= ? AND seq < ?", []any{int64(a.from), int64(a.to)}
	if a.question.Run != "" {
		id, err := a.view.ID(ctx, a.question.Run)
		if err != nil {
			return err
		}
		a.terms, a.args = a.terms+" AND run = ?", append(a.args, id)
	}
	if a.question.Policy != "" {
		ids, err := a.policies(ctx)
		if err != nil {
			return err
		}
		a.terms, a.args = a.terms+" AND policy IN "+index.Listed, append(a.args, index.List(ids))
	}
	return a.span(ctx)
}

func (a *asking) policies(ctx context.Context) ([]int64, error) {
	prefix, begins := strings.CutSuffix(a.question.Policy, "*")
	if !begins {
		id, err := a.view.ID(ctx, prefix)
		return []int64{id}, err
	}
	return a.view.IDs(ctx, "SELECT DISTINCT policy FROM sandboxes JOIN texts ON texts.id = policy WHERE substr(text, 1, length(?)) = ?", prefix, prefix)
}

// span notes the first and the last record that are there.
func (a *asking) span(ctx context.Context) error {
	for _, end := range []struct {
		seq   *uint64
		at    *time.Time
		order string
	}{{&a.report.First, &a.since, "ASC"}, {&a.report.Last, &a.until, "DESC"}} {
		var seq, at int64
		there, err := a.view.Scan(ctx, "SELECT seq, at FROM records WHERE seq >= ? AND seq < ? ORDER BY seq "+end.order+" LIMIT 1", []any{int64(a.from), int64(a.to)}, &seq, &at)
		if err != nil {
			return err
		}
		if !there {
			a.report.Empty = true
			return nil
		}
		*end.seq, *end.at = uint64(seq), time.Unix(0, at)
	}
	return nil
}

// weighed counts the records of packages with an outcome, and their runs.
func (a *asking) weighed(ctx context.Context, outcomes ...audit.Outcome) (records, runs int, err error) {
	ids, err := a.outcomes(ctx, outcomes...)
	if err != nil {
		return 0, 0, err
	}
	kind, err := a.view.ID(ctx, string(audit.KindPackage))
	if err != nil {
		return 0, 0, err
	}
	_, err = a.view.Scan(ctx, "SELECT count(*), count(DISTINCT run) FROM records WHERE outcome IN "+index.Listed+" AND kind = ? AND "+a.terms,
		append([]any{index.List(ids), kind}, a.args...), &records, &runs)
	return records, runs, err
}

func (a *asking) outcomes(ctx context.Context, outcomes ...audit.Outcome) ([]int64, error) {
	var ids []int64
	for _, o := range outcomes {
		id, err := a.view.ID(ctx, string(o))
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// text is a text by its number. Reports ask for few different ones.
func (a *asking) text(ctx context.Context, id int64) (string, error) {
	if text, known := a.texts[id]; known || id == 0 {
		return text, nil
	}
	text, err := a.view.Text(ctx, id)
	a.texts[id] = text
	return text, err
}

// count writes a number with commas, "1,204".
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// of is "1 install", "2 installs".
func of(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return count(n) + " " + what + "s"
}
