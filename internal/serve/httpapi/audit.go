package httpapi

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/report"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxQuestion bounds a question about the log: lockfiles are in it, in base64.
const maxQuestion = maxBody + lockfile.MaxTotal/3*4

// Auditing answers questions about the log.
type Auditing struct {
	Index   *index.Index
	Reports *report.Reporter
	// End is audit.FileLog's: the next record's number, and what is closed when
	// there is another record.
	End func() (next uint64, grown <-chan struct{})
}

// auditRoutes are about the log.
type auditRoutes struct{ *desk }

// auditReport answers a report.
func (s auditRoutes) auditReport(w http.ResponseWriter, r *http.Request) error {
	var asked api.AuditQuestion
	if err := readLarge(r, &asked, maxQuestion); err != nil {
		return err
	}
	question, err := AuditQuestion(asked)
	if err != nil {
		return err
	}
	if asked.Run != "" && s.cfg.Sandboxes != nil { // the records of ended commands are to be there
		if err := s.cfg.Sandboxes.Settle(r.Context(), asked.Run); err != nil {
			return err
		}
	}
	answer, err := s.cfg.Audit.Reports.Answer(r.Context(), r.PathValue("name"), question)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, ViewReport(answer))
}

// AuditFilter reads a query.
func AuditFilter(q api.AuditQuery) (index.Filter, error) {
	f := index.Filter{Where: q.Where, Text: q.Text, Since: q.Since, Until: q.Until, From: q.From, Exit: q.Exit, Limit: q.Limit}
	if q.Limit < 0 {
		return f, fault.Invalid("a limit is not negative")
	}
	for _, name := range q.Flags {
		flag, known := map[string]int{
			"claimed": index.FlagClaimed, "guest": index.FlagGuest, "unaccounted": index.FlagUnaccounted, "brought": index.FlagBrought, "alarm": index.FlagAlarm,
		}[name]
		if !known {
			return f, fault.Invalid("unknown mark %q; known marks: claimed, guest, unaccounted, brought, alarm", name)
		}
		f.Flags |= flag
	}
	return f, nil
}

// ViewReport returns a report as it is told.
func ViewReport(r report.Report) api.AuditReport {
	out := api.AuditReport{
		Report: r.Report, Asked: r.Asked, First: r.First, Last: r.Last, Empty: r.Empty, Checkpoint: r.Checkpoint, Verified: r.Verified, Tables: []api.AuditTable{},
		Found: r.Found, Unjudged: r.Unjudged, Verdict: r.Verdict, Records: r.Records,
	}
	for _, t := range r.Tables {
		out.Tables = append(out.Tables, api.AuditTable(t))
	}
	return out
}

// AuditQuestion reads a question's lockfiles and checks the rest.
func AuditQuestion(asked api.AuditQuestion) (report.Question, error) {
	q := report.Question{Since: asked.Since, Until: asked.Until, Run: asked.Run, Policy: asked.Policy, User: asked.User, Token: asked.Token, Limit: asked.Limit, MinRuns: asked.MinRuns}
	if asked.Limit < 0 || asked.MinRuns < 0 {
		return q, fault.Invalid("a limit and a number of runs are not negative")
	}
	if len(asked.Lockfiles) == 0 {
		return q, nil
	}
	var files []*lockfile.Lockfile
	for _, l := range asked.Lockfiles {
		f, err := lockfile.Parse(l.Source, l.Document)
		if err != nil {
			return q, err
		}
		files = append(files, f)
	}
	set, err := lockfile.NewSet(policy.LockRules{}, files)
	if err != nil {
		return q, err
	}
	q.Baseline = set
	return q, nil
}

// auditQuery streams the selected records as JSON lines. The records that the index selects are read from the log.
func (s auditRoutes) auditQuery(w http.ResponseWriter, r *http.Request) error {
	var asked api.AuditQuery
	if err := readJSON(r, &asked); err != nil {
		return err
	}
	filter, err := AuditFilter(asked)
	if err != nil {
		return err
	}
	var seqs []uint64
	err = s.cfg.Audit.Index.View(r.Context(), func(v *index.View) (err error) {
		seqs, _, err = v.Select(r.Context(), filter)
		return err
	})
	if err != nil {
		return err
	}
	if seqs == nil {
		seqs = []uint64{} // none, not all
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	_, err = s.sendRecords(json.NewEncoder(w), r, audit.Filter{Seqs: seqs})
	return err
}

// auditStream sends records from a number on, as JSON lines; with follow=1 it
// waits for those to come, until the client goes away.
func (s auditRoutes) auditStream(w http.ResponseWriter, r *http.Request) error {
	from, err := strconv.ParseUint("0"+r.URL.Query().Get("from"), 10, 64)
	if err != nil {
		return fault.Invalid("from=%q is not a record's number", r.URL.Query().Get("from"))
	}
	follow := r.URL.Query().Get("follow") == "1"
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := bufio.NewWriterSize(w, 64<<10)
	out, flush := json.NewEncoder(lines), http.NewResponseController(w)
	for {
		end, grown := s.cfg.Audit.End()
		if from < end {
			next, err := s.sendRecords(out, r, audit.Filter{FromSeq: from})
			if err != nil {
				return err
			}
			from = max(next, end) // more may have come meanwhile; the last may be elsewhere
		}
		if err := lines.Flush(); err != nil {
			return errAnswered
		}
		if err := flush.Flush(); err != nil {
			return errAnswered
		}
		if !follow {
			return nil
		}
		select {
		case <-grown:
		case <-r.Context().Done():
			return errAnswered
		}
	}
}

// sendRecords sends what the filter selects, and returns the number after the
// last one.
func (s auditRoutes) sendRecords(out *json.Encoder, r *http.Request, filter audit.Filter) (next uint64, err error) {
	next = filter.FromSeq
	for rec, err := range s.cfg.Log.Records(r.Context(), filter) {
		if err != nil {
			return next, s.cutAnswer(r, err)
		}
		if err := out.Encode(rec); err != nil {
			return next, errAnswered
		}
		next = rec.Seq + 1
	}
	return next, nil
}
