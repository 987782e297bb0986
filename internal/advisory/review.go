package advisory

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// alarmEvent tells an alarm of a review from others, in its record's Detail.
const alarmEvent = "served_before"

// reviewedName is the file that names the malware by which the log was reviewed
// last, so that a review that a crash cut short is made up for.
const reviewedName = "reviewed"

// Bounds on what a review keeps.
const (
	mostAlarms    = 10_000
	mostAlarmRuns = 20
	mostShares    = 1_000 // owners who are told of an alarm by a record of their own
)

// sighting is one release, one advisory, and when it was let in.
type sighting struct {
	release  pkgref.Ref
	advisory string
}

// review is one way through the log.
type review struct {
	facts   *generation
	verdict verdict
	alarms  map[sighting]*api.AdvisoryAlarm
	order   []sighting
	shares  map[sighting][]*share // of each alarm, by owner
	more    bool                  // than could be kept
}

// owner is whose a run is, as its records say.
type owner struct{ user, token string }

// share is what of an alarm is one owner's, who is told of that by a record of his own.
type share struct {
	owner
	runs    []string // the first of them
	records int
}

// ReviewDue reports whether malware was imported that the log was not reviewed
// by.
func (db *DB) ReviewDue() bool {
	g := db.current.Load()
	if g.damage != nil || len(g.tables) == 0 {
		return false
	}
	seen, err := os.ReadFile(filepath.Join(db.dir, reviewedName))
	return err != nil || string(seen) != g.malware
}

// Review reads the whole log, record by record, for releases that were served
// or found installed and are known to be malicious now. For each, and each
// advisory, that no alarm tells of yet it appends one; these are returned. What
// is let in while it reads was judged by the facts of that moment.
func (db *DB) Review(ctx context.Context, log audit.Log) ([]api.AdvisoryAlarm, error) {
	db.reviews.Lock()
	defer db.reviews.Unlock()
	g := db.current.Load()
	if g.damage != nil {
		return nil, g.damage
	}
	v, err := newVerdict()
	if err != nil {
		return nil, err
	}
	alarms := []api.AdvisoryAlarm{}
	for more := true; more; {
		r := &review{facts: g, verdict: v, alarms: map[sighting]*api.AdvisoryAlarm{}, shares: map[sighting][]*share{}}
		if err := r.read(ctx, log); err != nil {
			return alarms, err
		}
		raised, err := r.raise(ctx, log)
		alarms, more = append(alarms, raised...), r.more
		if err != nil {
			return alarms, err
		}
	}
	if len(g.tables) == 0 {
		return alarms, nil
	}
	if err := replace(db.options.disk, filepath.Join(db.dir, reviewedName), []byte(g.malware)); err != nil {
		return alarms, fault.Wrap(fault.ErrUnavailable, err, "the advisory database can't be written")
	}
	return alarms, nil
}

func (r *review) read(ctx context.Context, log audit.Log) error {
	filter := audit.Filter{
		Kinds:    []audit.Kind{audit.KindPackage},
		Outcomes: []audit.Outcome{audit.Served, audit.Installed, audit.Alarm},
	}
	for record, err := range log.Records(ctx, filter) {
		if err != nil {
			return err
		}
		if err := r.take(record); err != nil {
			return err
		}
	}
	return nil
}

func (r *review) take(record audit.Record) error {
	release := pkgref.Ref{Ecosystem: pkgref.Ecosystem(record.Ecosystem), Name: record.Package, Version: record.InstalledVersion}
	if record.Outcome == audit.Alarm {
		if record.Detail["event"] == alarmEvent && record.Detail[detailMore] == "" {
			s := sighting{release, record.Detail["advisory"]}
			delete(r.alarms, s)
			delete(r.shares, s)
		}
		return nil
	}
	known, err := r.facts.malwareOf(release)
	if err != nil {
		return err
	}
	for _, m := range known {
		if r.verdict.affects(release, m) {
			r.see(sighting{release, m.ID}, record)
		}
	}
	return nil
}

func (r *review) see(s sighting, record audit.Record) {
	a := r.alarms[s]
	if a == nil {
		if len(r.alarms) >= mostAlarms {
			r.more = true // the next way through finds it, when these have their alarms
			return
		}
		a = &api.AdvisoryAlarm{
			Ecosystem: string(s.release.Ecosystem), Name: s.release.Name, Version: s.release.Version, Advisory: s.advisory, First: record.Time,
		}
		r.alarms[s] = a
		r.order = append(r.order, s)
	}
	a.Records++
	a.Last = record.Time
	if record.Run != "" && len(a.Runs) < mostAlarmRuns && !slices.Contains(a.Runs, record.Run) {
		a.Runs = append(a.Runs, record.Run)
	}
	r.share(s, record)
	if record.SHA256 != "" && len(a.SHA256) < mostAlarmRuns && !slices.Contains(a.SHA256, record.SHA256) {
		a.SHA256 = append(a.SHA256, record.SHA256)
	}
}

// share counts a record for whose run it is of.
func (r *review) share(s sighting, record audit.Record) {
	of := owner{record.User, record.OwnerToken()}
	i := slices.IndexFunc(r.shares[s], func(one *share) bool { return one.owner == of })
	if i < 0 {
		if len(r.shares[s]) == mostShares {
			of = owner{} // of all others
			i = slices.IndexFunc(r.shares[s], func(one *share) bool { return one.owner == of })
		}
		if i < 0 {
			r.shares[s] = append(r.shares[s], &share{owner: of})
			i = len(r.shares[s]) - 1
		}
	}
	one := r.shares[s][i]
	one.records++
	if record.Run != "" && len(one.runs) < mostAlarmRuns && !slices.Contains(one.runs, record.Run) {
		one.runs = append(one.runs, record.Run)
	}
}

// detailMore is of all records of an alarm but the last: others follow. Where they do not, since
// the daemon was killed in between, the next review raises the alarm once more.
const detailMore = "more"

// raise appends the alarms, in the order in which the releases were let in: of each a record
// for every owner of runs that it was let into.
func (r *review) raise(ctx context.Context, log audit.Log) ([]api.AdvisoryAlarm, error) {
	raised := []api.AdvisoryAlarm{}
	for _, s := range r.order {
		a := r.alarms[s]
		if a == nil {
			continue
		}
		delete(r.alarms, s) // an alarm between two sightings puts it in the order twice
		for i, one := range r.shares[s] {
			record := alarmRecord(*a, one)
			if i < len(r.shares[s])-1 {
				record.Detail[detailMore] = "true"
			}
			if _, err := log.Append(ctx, record); err != nil {
				return raised, err
			}
		}
		raised = append(raised, *a)
	}
	return raised, nil
}

func alarmRecord(a api.AdvisoryAlarm, of *share) audit.Record {
	record := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Alarm, Ecosystem: a.Ecosystem, Package: a.Name, InstalledVersion: a.Version,
		User: of.user, Token: of.token, ResolvedBy: string(policy.ByAdvisory), Rule: "advisory." + a.Advisory,
		Reason: fmt.Sprintf("This release was let in before %s said that it is malicious.", a.Advisory),
		Detail: map[string]string{"event": alarmEvent, "advisory": a.Advisory, audit.DetailRuns: strings.Join(of.runs, " "), "records": strconv.Itoa(of.records)},
	}
	if len(a.SHA256) == 1 {
		record.SHA256 = a.SHA256[0]
	}
	if len(of.runs) == 1 {
		record.Run = of.runs[0]
	}
	return record
}
