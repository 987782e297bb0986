package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxToldAlarms bounds the alarms of one answer.
const maxToldAlarms = 100

// tellAlarms answers with the alarms that a run has had since a record. As the summary does, it
// waits for the records of ended commands: what they have installed may be one.
func (s runRoutes) tellAlarms(w http.ResponseWriter, r *http.Request) error {
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	q := r.URL.Query()
	if err := checkQueryKeys(q, "run", "sandbox", "after"); err != nil {
		return err
	}
	run, err := s.soughtRun(r, &admission.Sought{Run: q.Get("run"), Sandbox: q.Get("sandbox")})
	if err != nil {
		return err
	}
	if s.cfg.Audit.End == nil || s.cfg.Audit.Index == nil {
		return errNotWired
	}
	sought := soughtAlarms{run: run, sandbox: q.Get("sandbox"), told: q.Get("after") != ""}
	if sought.from, err = s.alarmsFrom(by, q.Get("after")); err != nil {
		return err
	}
	if sought.told {
		if err := s.cfg.Sandboxes.Settle(r.Context(), run); err != nil {
			return err
		}
	}
	answer := api.Alarms{Run: run, Alarms: []api.Alarm{}}
	next, err := s.alarmsSince(r.Context(), by, sought, &answer)
	if err != nil {
		return err
	}
	if !by.seesAll() {
		next = s.positions.conceal(by.token.ID, next)
	}
	answer.Next = strconv.FormatUint(next, 10)
	return writeJSON(w, r, http.StatusOK, answer)
}

// alarmsFrom is the record that a caller was told as after; 0: it was told none.
func (s runRoutes) alarmsFrom(by caller, after string) (uint64, error) {
	from, err := parseNumber(after)
	if err != nil {
		return 0, err
	}
	if !by.seesAll() {
		from = s.positions.reveal(by.token.ID, from)
	}
	if end, _ := s.cfg.Audit.End(); from > end {
		return 0, fault.Invalid("after=%.40s is the next of no answer about alarms; ask without it", after)
	}
	return from, nil
}

// soughtAlarms are those of a run since a record. With a sandbox they are those of this one of the
// run, and those that are of the run alone.
type soughtAlarms struct {
	run, sandbox string
	from         uint64
	told         bool // false: it is only asked where those begin that are still to come
}

// alarmsSince puts the sought alarms into an answer, and returns from where on there are others.
// That changes with records of the run and with its alarms alone: a token would see by it when
// others do something.
func (s runRoutes) alarmsSince(ctx context.Context, by caller, sought soughtAlarms, answer *api.Alarms) (next uint64, err error) {
	seqs, next, err := s.alarmNumbers(ctx, sought)
	if err != nil {
		return 0, err
	}
	for rec, err := range s.cfg.Log.Records(ctx, audit.Filter{Seqs: seqs, Alarms: true}) {
		if err != nil {
			return 0, err
		}
		if !isOfRun(rec, sought.run) {
			continue
		}
		next = max(next, rec.Seq+1)
		if !sought.told || sought.sandbox != "" && rec.Sandbox != "" && rec.Sandbox != sought.sandbox {
			continue
		}
		if answer.Total++; answer.Total > maxToldAlarms {
			continue
		}
		if !by.seesAll() {
			rec = s.positions.concealIn(by.token.ID, rec)
		}
		answer.Alarms = append(answer.Alarms, viewAlarm(rec))
	}
	return next, nil
}

// alarmNumbers are the numbers of the alarms that may be a run's, in ascending order, and the
// first number past all that is on record under the run, or sought.from if that is higher. Those
// past that alone are looked at where nothing is told. The index knows them: however long the log
// is, only these are read.
func (s runRoutes) alarmNumbers(ctx context.Context, sought soughtAlarms) (seqs []uint64, next uint64, err error) {
	err = s.cfg.Audit.Index.View(ctx, func(v *index.View) error {
		run, err := v.ID(ctx, sought.run)
		if err != nil {
			return err
		}
		alarm, err := v.ID(ctx, string(audit.Alarm))
		if err != nil {
			return err
		}
		past := int64(0)
		if _, err := v.Scan(ctx, "SELECT coalesce(max(seq) + 1, 0) FROM records WHERE run = ?", []any{run}, &past); err != nil {
			return err
		}
		next = max(sought.from, uint64(past))
		from := sought.from
		if !sought.told {
			from = next
		}
		own, err := v.Seqs(ctx, "SELECT seq FROM records WHERE run = ? AND seq >= ? AND flags & ? <> 0", run, int64(from), index.FlagAlarm)
		if err != nil {
			return err
		}
		shared, err := v.Seqs(ctx, "SELECT seq FROM records WHERE outcome = ? AND run = 0 AND seq >= ? AND flags & ? <> 0", alarm, int64(from), index.FlagAlarm)
		seqs = append(own, shared...)
		return err
	})
	slices.Sort(seqs)
	return seqs, next, err
}

// isOfRun reports whether an alarm is a run's: one that was found in the log later may be several
// runs', which its detail names then.
func isOfRun(r audit.Record, run string) bool {
	return r.Run == run || r.Run == "" && slices.Contains(strings.Fields(r.Detail[audit.DetailRuns]), run)
}

func viewAlarm(r audit.Record) api.Alarm {
	return api.Alarm{
		Seq: r.Seq, Time: r.Time, Sandbox: r.Sandbox, Package: viewRef(records.RefOf(r)), File: r.File, Name: r.Detail[records.DetailName],
		Outcome: string(r.Outcome), Rule: r.Rule, Reason: r.Reason, Count: max(1, r.Count),
	}
}
