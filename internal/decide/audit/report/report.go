// Package report answers an auditor's questions over the audit log: each report
// is one question, with a heading that says what was asked and over which
// records, a table, and a verdict.
//
// A release that was served was let in. The installs of a run are records of what was found on a
// sandbox's disk. A run's installs are compared with a baseline, a set of lockfiles. Each report
// looks for something, so none found is good news for all but `approvals` and `run`. An entry that
// could not be judged counts as unjudged, and never as good.
//
// The index finds the records; those that are shown are read from the log.
package report

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Baseline is a set of lockfiles.
type Baseline interface {
	// For says what the set has about a package; nil if it has no lockfile of
	// the package's ecosystem.
	For(pkg pkgref.Ref) *policy.Lock
}

// Config is what reports are made from; only Index is needed.
type Config struct {
	Index *index.Index
	// Lockfiles finds the lockfiles of a run by the digest in its started record;
	// nil: they are not at hand.
	Lockfiles func(digest string) (Baseline, error)
	// Upstreams are, by ecosystem, the places that files may come from
	// ("https://files.example"); nil: not known.
	Upstreams func() map[string][]string
	// Checkpoint is the newest log checkpoint in a line; nil or "": there is none.
	Checkpoint func() string
	// Verify verifies the log that the index is of, before each answer; nil: nobody does, and
	// the report says so. Of a log that is not sound no report is made, and of one that is it is
	// made over an index of its own: see index.Anew.
	Verify func(ctx context.Context) (audit.Verdict, error)
	// Own tells that Index was made of the verified log for these reports, where nobody else
	// writes.
	Own bool
}

// Reporter answers. It is safe for concurrent use.
type Reporter struct{ config Config }

// New makes a Reporter.
func New(config Config) *Reporter { return &Reporter{config} }

// Question is what is asked, with its lockfiles read.
type Question struct {
	Since, Until time.Time // until is not included; zero: not bounded
	Run, Policy  string
	User, Token  string   // whose runs; "": anybody's
	Baseline     Baseline // in place of each run's own; nil: those
	Limit        int      // of rows; 0: all
	MinRuns      int      // for busy-runs; 0: 10
}

// Name is a report.
type Name struct {
	Name string
	What string // what it finds, after "finds"
}

// reportQuestion is a report as it is asked.
type reportQuestion struct {
	Name

	asked  string // the heading, after "Asked:"
	answer func(context.Context, *asking) error
}

func questions() []reportQuestion {
	return []reportQuestion{
		{Name{"not-in-lockfile", "installed packages that are not in the run's lockfiles"}, "installed packages that are not in the baseline lockfile", notInLockfile},
		{Name{"off-allowlist", "what was let in or installed by no list, dependency, trusted lockfile or approval"}, "what was let in without allowlist, dependency, trusted lockfile or approval", offAllowlist},
		{Name{"version-mismatch", "installs of another version than was pinned or requested"}, "installs of another version than was pinned or requested", versionMismatch},
		{Name{"unexpected-source", "files from another source than configured, or than earlier files of the project"}, "files from an unexpected source", unexpectedSource},
		{Name{"alarms", "every alarm, whatever it is about: the same that summaries, metrics and webhooks tell of"}, "alarms", alarms},
		{Name{"busy-runs", "runs with unusually many install events for their policy"}, "runs with unusually many install events", busyRuns},
		{Name{"unaccounted", "what is on a sandbox's disk and was never served"}, "what is on a disk and was never served", unaccounted},
		{Name{"approvals", "who answered what, when, and what it let in"}, "answers to held requests", approvals},
		{Name{"run", "everything about one run"}, "everything that is on record", reportRun},
	}
}

// Names lists the reports.
func Names() []Name {
	var names []Name
	for _, q := range questions() {
		names = append(names, q.Name)
	}
	return names
}

// Answer answers the report of that name. fault.ErrNotFound if there is none, or
// the run that it is about is not on record.
func (r *Reporter) Answer(ctx context.Context, name string, q Question) (Report, error) {
	var names []string
	for _, known := range questions() {
		if known.Name.Name != name {
			names = append(names, known.Name.Name)
			continue
		}
		if name == "run" && q.Run == "" {
			return Report{}, fault.Invalid("the report run is about a run; name it")
		}
		verdict, err := r.verify(ctx)
		if err != nil {
			return Report{}, err
		}
		var report Report
		view := r.config.Index.View
		if verdict != nil && !r.config.Own {
			view = r.config.Index.Anew
		}
		err = view(ctx, func(v *index.View) error {
			a := &asking{config: r.config, question: q, view: v, texts: map[int64]string{}, baselines: map[int64]Baseline{}}
			a.report = Report{Report: name, Tables: []Table{}}
			if err := a.beginSearch(ctx); err != nil {
				return err
			}
			if err := known.answer(ctx, a); err != nil {
				return err
			}
			a.headText(known.asked)
			if a.report.Unjudged += a.erased; a.erased > 0 {
				a.report.Verdict += fmt.Sprintf(" Of %s it was erased whose they are, so that they are not judged.", countOf(a.erased, "record"))
			}
			a.report.Verified = verified(verdict, a.report, r.config.Own)
			report = a.report
			return nil
		})
		return report, err
	}
	return Report{}, fault.New(fault.ErrNotFound, "there is no report %q; there are: %s", name, strings.Join(names, ", "))
}

// verify refuses a log that is not as it was written: whoever changed it has chosen the answer.
// nil: nobody verifies it.
func (r *Reporter) verify(ctx context.Context) (*audit.Verdict, error) {
	if r.config.Verify == nil {
		return nil, nil //nolint:nilnil // it is not verified, and the report says so
	}
	v, err := r.config.Verify(ctx)
	if err != nil {
		return nil, err
	}
	if v.Sound {
		return &v, nil
	}
	what := "it does not fit its checkpoints"
	if len(v.Problems) > 0 {
		what = v.Problems[0].What
	}
	return nil, fault.New(fault.ErrConflict, "the log is not as it was written, so no report is made of it: %s; cofferdam audit verify tells more", what)
}

// verified says what is proved of the records of a report; "": nothing is. A copy, which is the asker's own, was
// verified by the asker's key, and a daemon's log by the key that the daemon signs it with.
func verified(v *audit.Verdict, r Report, own bool) string {
	if v == nil {
		return ""
	}
	key := "the daemon's own key"
	switch {
	case v.KeyFrom == "log":
		key = "the key that lies with the log"
	case own:
		key = "the key that was given"
	}
	text := fmt.Sprintf("%s by %s", countOf(int(v.Records), "record"), key)
	switch {
	case v.Covered == 0:
		text += ", and no log checkpoint covers any of them yet"
	case v.Covered < v.Records:
		text += fmt.Sprintf(", of which no log checkpoint covers the last %d yet", v.Records-v.Covered)
	}
	if v.Elsewhere > 0 {
		text += fmt.Sprintf("; %d of them are elsewhere, and only their hashes are here", v.Elsewhere)
	}
	if !r.Empty && r.Last >= v.Records {
		text += fmt.Sprintf("; records %d to %d came while it was verified, and are not", v.Records, r.Last)
	}
	return text
}

// headText says what was asked and over which records.
func (a *asking) headText(asked string) {
	r := &a.report
	if a.question.Run != "" {
		asked += " of run " + a.question.Run
	}
	if a.question.Policy != "" {
		asked += " under policy " + a.question.Policy
	}
	if a.question.User != "" {
		asked += " of user " + a.question.User
	}
	if a.question.Token != "" {
		asked += " of token " + a.question.Token
	}
	switch {
	case r.Empty:
		r.Asked = "Asked: " + asked + "; over no records."
	default:
		r.Asked = fmt.Sprintf("Asked: %s; over records %d to %d", asked, r.First, r.Last)
		if !a.since.IsZero() {
			r.Asked += fmt.Sprintf(" (%s to %s)", a.since.UTC().Format(time.DateTime), a.until.UTC().Format(time.DateTime))
		}
		r.Asked += "."
	}
	if a.config.Checkpoint != nil {
		r.Checkpoint = a.config.Checkpoint()
	}
}

// recordJSON is a record as JSON.
func recordJSON(r audit.Record) (json.RawMessage, error) {
	data, err := json.Marshal(r)
	return data, err
}
