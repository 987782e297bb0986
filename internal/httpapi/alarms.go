package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
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
	if err := known(q, "run", "sandbox", "after"); err != nil {
		return err
	}
	run, err := s.soughtRun(r, &admission.Sought{Run: q.Get("run"), Sandbox: q.Get("sandbox")})
	if err != nil {
		return err
	}
	if s.cfg.Audit.End == nil {
		return errNotWired
	}
	answer := api.Alarms{Run: run, Alarms: []api.Alarm{}}
	var end uint64
	if after := q.Get("after"); after == "" {
		end, _ = s.cfg.Audit.End()
	} else if end, err = s.alarmsSince(r, by, after, q.Get("sandbox"), &answer); err != nil {
		return err
	}
	if !by.all() {
		end = s.positions.conceal(by.token.ID, end)
	}
	answer.Next = strconv.FormatUint(end, 10)
	return writeJSON(w, http.StatusOK, answer)
}

// alarmsSince puts into an answer the alarms of its run after a record, as a caller was told its
// number, and returns the first one that was not looked at. With a sandbox they are those of this
// one of the run, and those that are of the run alone.
func (s runRoutes) alarmsSince(r *http.Request, by caller, after, sandbox string, answer *api.Alarms) (end uint64, err error) {
	from, err := number(after)
	if err != nil {
		return 0, err
	}
	if !by.all() {
		from = s.positions.reveal(by.token.ID, from)
	}
	if err := s.cfg.Sandboxes.Settle(r.Context(), answer.Run); err != nil {
		return 0, err
	}
	end, _ = s.cfg.Audit.End()
	if from > end {
		return 0, fault.Invalid("after=%.40s is the next of no answer about alarms; ask without it", after)
	}
	for rec, err := range s.cfg.Log.Records(r.Context(), audit.Filter{FromSeq: from, Alarms: true}) {
		if err != nil {
			return 0, err
		}
		if rec.Seq >= end {
			break
		}
		if !ofRun(rec, answer.Run) || sandbox != "" && rec.Sandbox != "" && rec.Sandbox != sandbox {
			continue
		}
		if answer.Total++; answer.Total > maxToldAlarms {
			continue
		}
		if !by.all() {
			rec = s.positions.concealIn(by.token.ID, rec)
		}
		answer.Alarms = append(answer.Alarms, viewAlarm(rec))
	}
	return end, nil
}

// ofRun reports whether an alarm is a run's: one that was found in the log later may be several
// runs', which its detail names then.
func ofRun(r audit.Record, run string) bool {
	return r.Run == run || r.Run == "" && slices.Contains(strings.Fields(r.Detail[audit.DetailRuns]), run)
}

func viewAlarm(r audit.Record) api.Alarm {
	return api.Alarm{
		Seq: r.Seq, Time: r.Time, Sandbox: r.Sandbox, Package: records.RefOf(r), File: r.File, Name: r.Detail[records.DetailName],
		Outcome: string(r.Outcome), Rule: r.Rule, Reason: r.Reason, Count: max(1, r.Count),
	}
}
