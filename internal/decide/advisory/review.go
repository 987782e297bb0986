package advisory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// alarmEvent tells an alarm of a review from others, in its record's Detail.
const alarmEvent = "served_before"

// reviewedName is the file that names the malware by which the log was reviewed
// last, so that a review that a crash cut short is made up for.
const reviewedName = "reviewed"

// Bounds on what a review keeps.
const (
	mostAlarms    = 10_000 // of one way through the log: there is another for the rest
	mostAlarmRuns = 20     // that an answer names; each has an alarm of its own
)

// sighting is one release, one advisory, and one sandbox that it was let into, with its run and its owner.
type sighting struct {
	release  pkgref.Ref
	advisory string
	of       admissionPlace
}

// admissionPlace is where a release was let in, as the records say.
type admissionPlace struct{ user, token, run, sandbox string }

func placeOfRecord(r audit.Record) admissionPlace {
	return admissionPlace{r.User, r.OwnerToken(), r.Run, r.Sandbox}
}

// seen is what the records say of a sighting.
type seen struct {
	came        int // how many others had come before
	records     int
	first, last time.Time
	sha256      []string
}

// review is one way through the log.
type review struct {
	facts   *generation
	verdict permissiveVerdict
	from    uint64 // the first record that is looked at
	alarms  map[sighting]*seen
	came    int    // how many sightings there have been
	more    bool   // than could be kept
	next    uint64 // the first record that could not be kept, if there are more
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

// Review reads the whole log, record by record, for releases that were served or found installed and
// are known to be malicious now. For each, and each advisory, that no alarm tells of yet it appends
// one; these are returned. A release that is let in while it reads was judged by the facts of that
// moment. Each sandbox has an alarm of its own, with its run and owner, so that whoever asks about
// any of these finds it; an answer has one for all of a release's.
func (db *DB) Review(ctx context.Context, log audit.Log) ([]api.AdvisoryAlarm, error) {
	db.reviews.Lock()
	defer db.reviews.Unlock()
	g := db.current.Load()
	if g.damage != nil {
		return nil, g.damage
	}
	v, err := newPermissiveVerdict()
	if err != nil {
		return nil, err
	}
	alarms := &raised{all: []api.AdvisoryAlarm{}, at: map[sighting]int{}}
	for r := (&review{more: true}); r.more; {
		// All before that could be kept, and has its alarms by now. Those who have had theirs take up room
		// until they are forgotten, so that a way through the whole log would get no further than the last
		// one.
		r = &review{facts: g, verdict: v, from: r.next, alarms: map[sighting]*seen{}}
		if err := r.readLog(ctx, log); err != nil {
			return alarms.all, err
		}
		if err := r.raiseAlarms(ctx, log, alarms); err != nil {
			return alarms.all, err
		}
	}
	if len(g.tables) == 0 {
		return alarms.all, nil
	}
	if err := replace(db.options.disk, filepath.Join(db.dir, reviewedName), []byte(g.malware)); err != nil {
		return alarms.all, fault.Wrap(fault.ErrUnavailable, err, "the advisory database can't be written")
	}
	return alarms.all, nil
}

func (r *review) readLog(ctx context.Context, log audit.Log) error {
	filter := audit.Filter{
		Kinds:    []audit.Kind{audit.KindPackage},
		Outcomes: []audit.Outcome{audit.Served, audit.Installed, audit.Alarm},
		FromSeq:  r.from,
	}
	for record, err := range log.Records(ctx, filter) {
		if err != nil {
			return err
		}
		if err := r.takeRecord(record); err != nil {
			return err
		}
	}
	return nil
}

func (r *review) takeRecord(record audit.Record) error {
	release := pkgref.Ref{Ecosystem: pkgref.Ecosystem(record.Ecosystem), Name: record.Package, Version: record.InstalledVersion}
	if record.Outcome == audit.Alarm {
		if record.Detail["event"] == alarmEvent {
			r.forgetAlarmed(release, record)
		}
		return nil
	}
	known, err := r.facts.malwareOf(release)
	if err != nil {
		return err
	}
	for _, m := range known {
		if r.verdict.affects(release, m) {
			r.addSighting(sighting{release, m.ID, placeOfRecord(record)}, record)
		}
	}
	return nil
}

// forgetAlarmed leaves out what an alarm tells of already. One of an earlier version is of all sandboxes of the runs that it names.
func (r *review) forgetAlarmed(release pkgref.Ref, alarm audit.Record) {
	told := sighting{release, alarm.Detail["advisory"], placeOfRecord(alarm)}
	delete(r.alarms, told)
	runs := strings.Fields(alarm.Detail[audit.DetailRuns])
	if len(runs) == 0 {
		return
	}
	for s := range r.alarms {
		if s.release == told.release && s.advisory == told.advisory && s.of.user == told.of.user && s.of.token == told.of.token && slices.Contains(runs, s.of.run) {
			delete(r.alarms, s)
		}
	}
}

func (r *review) addSighting(s sighting, record audit.Record) {
	a := r.alarms[s]
	if a == nil {
		if len(r.alarms) >= mostAlarms {
			if !r.more { // the next way through begins with it
				r.more, r.next = true, record.Seq
			}
			return
		}
		a = &seen{came: r.came, first: record.Time}
		r.alarms[s] = a
		r.came++
	}
	a.records++
	a.last = record.Time
	a.sha256 = addWord(a.sha256, record.SHA256)
}

// addWord adds a word that is not among the few that are kept; "" is none.
func addWord(words []string, word string) []string {
	if word == "" || len(words) == mostAlarmRuns || slices.Contains(words, word) {
		return words
	}
	return append(words, word)
}

// raiseAlarms appends the alarms, in the order in which the releases were let in, and adds them to an answer.
func (r *review) raiseAlarms(ctx context.Context, log audit.Log, answer *raised) error {
	inOrder := func(a, b sighting) int { return cmp.Compare(r.alarms[a].came, r.alarms[b].came) }
	for _, s := range slices.SortedFunc(maps.Keys(r.alarms), inOrder) {
		a := r.alarms[s]
		if _, err := log.Append(ctx, alarmRecord(s, a)); err != nil {
			return err
		}
		answer.addSighting(s, a)
	}
	return nil
}

func alarmRecord(s sighting, a *seen) audit.Record {
	record := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Alarm, Ecosystem: string(s.release.Ecosystem), Package: s.release.Name, InstalledVersion: s.release.Version,
		User: s.of.user, Token: s.of.token, Run: s.of.run, Sandbox: s.of.sandbox, ResolvedBy: string(policy.ByAdvisory), Rule: "advisory." + s.advisory,
		Reason: fmt.Sprintf("This release was let in before %s said that it is malicious.", s.advisory),
		Detail: map[string]string{"event": alarmEvent, "advisory": s.advisory, "records": strconv.Itoa(a.records)},
	}
	if len(a.sha256) == 1 {
		record.SHA256 = a.sha256[0]
	}
	return record
}

// raised are the alarms of a review, by release and advisory.
type raised struct {
	all []api.AdvisoryAlarm
	at  map[sighting]int // by a sighting without its place
}

func (r *raised) addSighting(s sighting, a *seen) {
	run := s.of.run
	s.of = admissionPlace{}
	i, known := r.at[s]
	if !known {
		i = len(r.all)
		r.at[s] = i
		r.all = append(r.all, api.AdvisoryAlarm{
			Ecosystem: string(s.release.Ecosystem), Name: s.release.Name, Version: s.release.Version, Advisory: s.advisory, First: a.first, Last: a.last,
		})
	}
	one := &r.all[i]
	one.Records += a.records
	one.Runs = addWord(one.Runs, run)
	if a.first.Before(one.First) {
		one.First = a.first
	}
	if a.last.After(one.Last) {
		one.Last = a.last
	}
	for _, sum := range a.sha256 {
		one.SHA256 = addWord(one.SHA256, sum)
	}
}
