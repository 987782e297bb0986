package report

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

// usualMinRuns is how many other runs make a history.
const usualMinRuns = 10

// activity is a run's install events under its policy.
type activity struct {
	run, policy int64
	first       uint64
	events      int
}

// busyRuns finds runs with more install events (files served, and installs) than
// 95 of 100 of their policy's other runs had, and more than twice the median. A
// policy with too few other runs has no history to judge by.
func busyRuns(ctx context.Context, a *asking) error {
	least := a.question.MinRuns
	if least <= 0 {
		least = usualMinRuns
	}
	histories, asked, err := a.histories(ctx)
	if err != nil {
		return err
	}
	t := Table{Columns: []string{"run", "events", "median", "95th percentile", "other runs", "policy", "first record"}, Rows: []map[string]string{}}
	judged := 0
	for _, r := range asked {
		others := withoutValue(histories[r.policy], r.events)
		if len(others) < least {
			a.report.Unjudged++
			continue
		}
		judged++
		median, high := quantile(others, 50), quantile(others, 95)
		if r.events <= high || r.events <= 2*median {
			continue
		}
		a.report.Found++
		if a.question.Limit > 0 && len(t.Rows) >= a.question.Limit {
			continue
		}
		row := map[string]string{
			"events": strconv.Itoa(r.events), "median": strconv.Itoa(median), "95th percentile": strconv.Itoa(high),
			"other runs": strconv.Itoa(len(others)), "first record": strconv.FormatUint(r.first, 10),
		}
		if row["run"], err = a.textByID(ctx, r.run); err != nil {
			return err
		}
		if row["policy"], err = a.textByID(ctx, r.policy); err != nil {
			return err
		}
		t.Rows = append(t.Rows, row)
	}
	a.report.Tables = append(a.report.Tables, t)
	busyVerdict(a, judged, least)
	return nil
}

func busyVerdict(a *asking, judged, least int) {
	a.report.Verdict = fmt.Sprintf("No unusually busy run among %s.", countOf(judged, "run"))
	if a.report.Found > 0 {
		a.report.Verdict = fmt.Sprintf("%s unusually busy, of %s: above the 95th percentile and twice the median of their policy's other runs.", formatCount(a.report.Found), countOf(judged, "run"))
	}
	if a.report.Unjudged > 0 {
		a.report.Verdict += fmt.Sprintf(" %s could not be judged: their policies had fewer than %d other runs.", countOf(a.report.Unjudged, "run"), least)
	}
}

// histories are, by policy, the sorted events of all its runs that began before
// the question's end; asked are the runs that the question is about.
func (a *asking) histories(ctx context.Context) (histories map[int64][]int, asked []activity, err error) {
	rows, err := a.view.Query(ctx, `SELECT run, policy, min(first), max(last), sum(served + installed), max(user), max(token) FROM sandboxes
		WHERE run <> 0 AND first < ? GROUP BY run, policy ORDER BY min(first)`, int64(a.to))
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	policies := []int64{}
	if a.question.Policy != "" {
		if policies, err = a.policies(ctx); err != nil {
			return nil, nil, err
		}
	}
	run := int64(0)
	if a.question.Run != "" {
		if run, err = a.view.ID(ctx, a.question.Run); err != nil {
			return nil, nil, err
		}
	}
	owner, err := a.findOwner(ctx)
	if err != nil {
		return nil, nil, err
	}
	histories = map[int64][]int{}
	for rows.Next() {
		var r activity
		var first, last, user, token int64
		if err := rows.Scan(&r.run, &r.policy, &first, &last, &r.events, &user, &token); err != nil {
			return nil, nil, err
		}
		r.first = uint64(first)
		histories[r.policy] = append(histories[r.policy], r.events)
		if uint64(last) >= a.from && (run == 0 || run == r.run) && owner.isOwner(user, token) && (a.question.Policy == "" || slices.Contains(policies, r.policy)) {
			asked = append(asked, r)
		}
	}
	for _, h := range histories {
		slices.Sort(h)
	}
	return histories, asked, rows.Err()
}

// owner is whose runs a question is about, as numbers of texts; 0: anybody's.
type owner struct{ user, token int64 }

func (a *asking) findOwner(ctx context.Context) (o owner, err error) {
	for _, part := range []struct {
		to   *int64
		text string
	}{{&o.user, a.question.User}, {&o.token, a.question.Token}} {
		if part.text == "" {
			continue
		}
		if *part.to, err = a.view.ID(ctx, part.text); err != nil {
			return o, err
		}
		if *part.to == 0 {
			*part.to = -1 // nobody's
		}
	}
	return o, nil
}

func (o owner) isOwner(user, token int64) bool {
	return (o.user == 0 || o.user == user) && (o.token == 0 || o.token == token)
}

// withoutValue is a sorted list without one of a value.
func withoutValue(sorted []int, value int) []int {
	i, found := slices.BinarySearch(sorted, value)
	if !found {
		return sorted
	}
	return slices.Delete(slices.Clone(sorted), i, i+1)
}

// quantile is the smallest value that so many of 100 don't exceed.
func quantile(sorted []int, percent int) int {
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
