package report

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
)

// asking is one report while it is made.
type asking struct {
	config   Config
	question Question
	view     *index.View
	report   Report

	from, to     uint64 // records from from on, before to
	since, until time.Time
	terms        string // what selects records besides their kind
	narrowed     string // of it, what is not about numbers, with " AND " before
	args         []any  // of terms, those of the numbers first

	erased int // records that may be of the one who is asked for, and of which that was erased

	texts     map[int64]string
	baselines map[int64]Baseline
}

// beginSearch finds the records that are looked at.
func (a *asking) beginSearch(ctx context.Context) error {
	var err error
	if a.from, a.to, err = a.view.Between(ctx, a.question.Since, a.question.Until); err != nil {
		return err
	}
	a.args = []any{int64(a.from), int64(a.to)}
	if a.question.Run != "" {
		id, err := a.view.ID(ctx, a.question.Run)
		if err != nil {
			return err
		}
		a.narrowed, a.args = " AND run = ?", append(a.args, id)
	}
	if a.question.Policy != "" {
		ids, err := a.policies(ctx)
		if err != nil {
			return err
		}
		a.narrowed, a.args = a.narrowed+" AND policy IN "+index.Listed, append(a.args, index.List(ids))
	}
	if err := a.countErased(ctx); err != nil {
		return err
	}
	for _, owner := range []struct{ column, text string }{{"user", a.question.User}, {"token", a.question.Token}} {
		if owner.text == "" {
			continue
		}
		id, err := a.view.ID(ctx, owner.text)
		if err != nil {
			return err
		}
		a.narrowed, a.args = a.narrowed+" AND "+owner.column+" = ?", append(a.args, id)
	}
	a.terms = "seq >= ? AND seq < ?" + a.narrowed
	return a.findSpan(ctx)
}

// countErased counts, where somebody's records are asked for, those of which nobody knows any more whose they were: they may
// be that one's, so they are not judged.
func (a *asking) countErased(ctx context.Context) error {
	if a.question.User == "" && a.question.Token == "" {
		return nil
	}
	_, err := a.view.Scan(ctx, "SELECT count(*) FROM records WHERE flags & ? <> 0 AND seq >= ? AND seq < ?"+a.narrowed, append([]any{index.FlagErased}, a.args...), &a.erased)
	return err
}

func (a *asking) policies(ctx context.Context) ([]int64, error) {
	prefix, begins := strings.CutSuffix(a.question.Policy, "*")
	if !begins {
		id, err := a.view.ID(ctx, prefix)
		return []int64{id}, err
	}
	return a.view.IDs(ctx, "SELECT DISTINCT policy FROM sandboxes JOIN texts ON texts.id = policy WHERE substr(text, 1, length(?)) = ?", prefix, prefix)
}

// findSpan notes the first and the last record that are there.
func (a *asking) findSpan(ctx context.Context) error {
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

// weighed counts files that were served and packages that were found installed, as far as is asked
// for each, and the runs that had any. The index sums up what a sandbox has; only of one that was
// at work at the question's edges the records are counted.
func (a *asking) weighed(ctx context.Context, served, installed bool) (records, runs int, err error) {
	sum := "0"
	var outcomes []audit.Outcome
	if served {
		sum, outcomes = sum+" + served", append(outcomes, audit.Served)
	}
	if installed {
		sum, outcomes = sum+" + installed", append(outcomes, audit.Installed)
	}
	terms, args := a.selectSandboxes()
	rows, err := a.view.Query(ctx, "SELECT run, sandbox, "+sum+", first >= ? AND last < ? FROM sandboxes WHERE "+sum+" > 0 AND "+terms,
		append([]any{int64(a.from), int64(a.to)}, args...)...)
	if err != nil {
		return 0, 0, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	seen, edges := map[int64]bool{}, map[int64]int64{}
	for rows.Next() {
		var run, box int64
		var n int
		var whole bool
		if err := rows.Scan(&run, &box, &n, &whole); err != nil {
			return 0, 0, err
		}
		if !whole {
			edges[box] = run
			continue
		}
		records += n
		seen[run] = true
	}
	if err := rows.Err(); err != nil {
		return 0, 0, err
	}
	for box, run := range edges {
		n, err := a.atEdge(ctx, box, run, outcomes)
		if err != nil {
			return 0, 0, err
		}
		if records += n; n > 0 {
			seen[run] = true
		}
	}
	return records, len(seen), nil
}

// selectSandboxes selects the sandboxes that had records among those that are looked at.
func (a *asking) selectSandboxes() (terms string, args []any) {
	terms, args = "last >= ? AND first < ?", []any{int64(a.from), int64(a.to)}
	if a.narrowed != "" {
		terms, args = terms+a.narrowed, append(args, a.args[2:]...)
	}
	return terms, args
}

// atEdge counts a sandbox's records among those that are looked at.
func (a *asking) atEdge(ctx context.Context, box, run int64, outcomes []audit.Outcome) (n int, err error) {
	ids, err := a.outcomes(ctx, outcomes...)
	if err != nil {
		return 0, err
	}
	kind, err := a.view.ID(ctx, string(audit.KindPackage))
	if err != nil {
		return 0, err
	}
	_, err = a.view.Scan(ctx, "SELECT count(*) FROM records WHERE run = ? AND sandbox = ? AND +kind = ? AND +outcome IN "+index.Listed+" AND seq >= ? AND seq < ?",
		[]any{run, box, kind, index.List(ids), int64(a.from), int64(a.to)}, &n)
	return n, err
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

// textByID is a text by its number. Reports ask for few different ones.
func (a *asking) textByID(ctx context.Context, id int64) (string, error) {
	if text, known := a.texts[id]; known || id == 0 {
		return text, nil
	}
	text, err := a.view.Text(ctx, id)
	a.texts[id] = text
	return text, err
}

// formatCount writes a number with commas, "1,204".
func formatCount(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// countOf is "1 install", "2 installs".
func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return formatCount(n) + " " + what + "s"
}
