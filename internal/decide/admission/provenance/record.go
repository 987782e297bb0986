package provenance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

const (
	// MaxAlarms of one inventory have a record of their own, the rest has one
	// together: each of them has its installed record.
	MaxAlarms = 50
	// appenders write the records of a large inventory at the same time.
	appenders = 32
)

// Record records the packages that the inventory shows and that were not
// there before, each once, joined with what was served to the sandbox; and those
// that were there before and were served to it nevertheless, as clients that
// install a tree anew ask for. One that was not served, and is not otherwise
// accounted for, is an alarm unless the policy says other: it is on the disk, and
// no record says how it got there. All of it is the guest's claim.
//
// Accounted for are packages inside of served files, copies of what the template
// brings, and packages that are written here: those whose name is a project's
// that lay on a mount before the first command, and those of a project in a
// directory of the sandbox, unless the policy's lists have the name.
func (a *Accounts) Record(ctx context.Context, disk Disk) error {
	found := a.findUnrecorded(sortOut(disk, a.config.Policy()))
	if err := a.recognise(ctx, disk.Contents, found); err != nil {
		return err
	}
	found = a.dropRecorded(found)
	bounds := describeBounds(disk.Found)
	if most := a.config.Most; len(found) > most {
		found, bounds = found[:most], append(bounds, fmt.Sprintf("it has more than %d packages that are not on record", most))
	}
	l := &listing{Accounts: a}
	if err := l.raiseAlarms(ctx, found); err != nil {
		return err
	}
	if err := l.recordAll(ctx, found); err != nil {
		return err
	}
	if len(bounds) > 0 {
		if err := a.incomplete(ctx, bounds); err != nil {
			return err
		}
	}
	return l.keptError()
}

// listing is what one inventory puts on record. After a record that the log does not take, and the Book
// keeps, it keeps the rest as well: there may be no other inventory. Safe for concurrent use.
type listing struct {
	*Accounts
	untaken atomic.Pointer[error] // the first error of a record that is kept
}

// keptError is nil if all is on record.
func (l *listing) keptError() error {
	if err := l.untaken.Load(); err != nil {
		return *err
	}
	return nil
}

// append is nil of what is on record, or kept.
func (l *listing) append(ctx context.Context, r audit.Record) error {
	write := l.config.Book.Append
	if l.keptError() != nil {
		write = l.config.Book.AppendLater
	}
	err := l.putRecord(ctx, r, write)
	if err == nil || !records.Kept(err) {
		return err
	}
	l.untaken.CompareAndSwap(nil, &err)
	return nil
}

// Unknown records that a sandbox's packages could not be listed after a
// command. Where the sandbox lives that is an alarm, since it may hide some.
func (a *Accounts) Unknown(ctx context.Context, cause string, lives bool) error {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Failed, Rule: RuleUnaccounted, GuestClaimed: true,
		Reason: "the sandbox ended before its packages were listed: " + redact.Cut(cause, 512),
	}
	if lives && a.config.Policy().Unaccounted() != policy.UnaccountedRecord {
		r.Outcome, r.Detail = audit.Alarm, map[string]string{records.DetailAlarm: "true"}
		r.Reason = "the sandbox does not list its packages, so nothing on its disk is accounted for: " + redact.Cut(cause, 512)
		a.markEnding(&r)
	}
	return a.putRecord(ctx, r, a.config.Book.Append)
}

// putRecord puts a record about the disk on record. That the policy ends the sandbox for it holds whether
// or not the log takes it; what it tells is found again by the next inventory, unless the Book keeps it.
func (a *Accounts) putRecord(ctx context.Context, r audit.Record, write func(context.Context, audit.Record) (audit.Record, error)) error {
	a.decide(r)
	written, err := write(ctx, r)
	if records.Kept(err) && !records.Counted(err) {
		a.Take(written)
	}
	return err
}

// findUnrecorded gives what may not be on record yet; of a release there may be several.
func (a *Accounts) findUnrecorded(s *sorting) []finding {
	served := lookup{Deliveries: a.config.Served, projects: a.config.Served.Projects(), brought: a.config.Served.Brought()}
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []finding
	for _, p := range s.kept {
		if r, was := served.Of(p.release); was {
			all = append(all, finding{item: p, served: &r})
		}
	}
	for _, p := range s.found {
		f := served.account(s, p)
		if !a.recorded[f.keyOfFinding()] && !a.known[placed{p.release, p.Path}] {
			all = append(all, f)
		}
	}
	return all
}

// dropRecorded leaves out what is on record, or twice among the findings.
func (a *Accounts) dropRecorded(all []finding) []finding {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := map[entryKey]bool{}
	return slices.DeleteFunc(all, func(f finding) bool {
		if f.recognised {
			a.known[placed{f.release, f.Path}] = true
		}
		key := f.keyOfFinding()
		if seen[key] || a.recorded[key] {
			return true
		}
		seen[key] = true
		return false
	})
}

// lookup is what was served, as far as findings are looked up in it.
type lookup struct {
	*records.Deliveries
	projects map[pkgref.Ref]audit.Record
	brought  map[pkgref.Ref]string
}

// account says where a package came from. A directory without a
// version is of a package that was served, if one of its name was: clients that
// are stopped leave such.
func (l lookup) account(s *sorting, p item) finding {
	f := finding{item: p}
	if r, was := l.Of(p.release); was {
		f.served = &r
	} else if p.release.Version == "" {
		if r, was := l.projects[p.release.Project()]; was {
			f.served, f.ref = &r, records.RefOf(r)
			f.release = f.ref.Release()
		}
	}
	switch outer, inside := l.brought[p.release]; {
	case f.served != nil:
		f.how = howServed
	case inside:
		f.how, f.origin = howBundled, outer
	case s.template[p.release]:
		f.how, f.origin = howTemplate, "the template"
	case s.isLocal(p):
		f.how, f.origin = howLocal, p.From
	case s.isUncertain(p):
		f.how = howUncertain
	default:
		f.how = howUnaccounted
	}
	return f
}

// raiseAlarms records alarms for what is not accounted for, before the installed
// records: those are what tells that it was done.
func (l *listing) raiseAlarms(ctx context.Context, found []finding) error {
	if l.config.Policy().Unaccounted() == policy.UnaccountedRecord {
		return nil
	}
	var left int
	var findings []finding
	l.mu.Lock()
	for _, f := range found {
		if f.how != howUnaccounted || l.alarmed[f.release] {
			continue
		}
		if len(findings) == MaxAlarms {
			left++
			continue
		}
		findings = append(findings, f)
	}
	l.mu.Unlock()
	for _, f := range findings {
		if err := l.recordAlarm(ctx, f.alarmRecord()); err != nil {
			return err
		}
	}
	if left == 0 {
		return nil
	}
	return l.recordAlarm(ctx, audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Alarm, Rule: RuleUnaccounted, GuestClaimed: true, Count: left,
		Reason: fmt.Sprintf("%d more packages are on the sandbox's disk that were never served to it; their installed records name them", left),
		Detail: map[string]string{records.DetailAlarm: "true", records.DetailUnaccounted: "true"},
	})
}

func (l *listing) recordAlarm(ctx context.Context, r audit.Record) error {
	l.markEnding(&r)
	return l.append(ctx, r)
}

// recordAll appends the findings' records; of many, several at a time.
// After a failure no more are begun.
func (l *listing) recordAll(ctx context.Context, found []finding) error {
	workers := appenders
	if len(found) <= 2*appenders {
		workers = 1
	}
	failed := make(chan error, workers)
	todo := make(chan finding)
	var group sync.WaitGroup
	for range workers {
		safego.In(&group, func() {
			for f := range todo {
				if err := safego.Try(func() error { return l.recordOne(ctx, f) }); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var err error
feed:
	for _, f := range found {
		select {
		case todo <- f:
		case err = <-failed:
			break feed
		}
	}
	close(todo)
	group.Wait()
	close(failed)
	return cmp.Or(err, <-failed)
}

func (l *listing) recordOne(ctx context.Context, f finding) error {
	r := f.installedRecord()
	if f.how == howUnaccounted && l.config.Policy().Unaccounted() != policy.UnaccountedRecord {
		r.Detail[records.DetailAlarm] = "true"
	}
	return l.append(ctx, r)
}

// describeBounds says in words which bounds an inventory met, that is not of all that lies on the disk.
func describeBounds(found channel.Inventory) []string {
	var bounds []string
	for _, bound := range found.Bounds {
		bounds = append(bounds, bound.String())
	}
	if found.Truncated && len(bounds) == 0 {
		bounds = []string{"its agent, which is of an earlier release, does not say why"}
	}
	return bounds
}

// incomplete records that not all that is on the disk is on record, and by which bounds. A package may
// lie where nobody looked: under a policy that ends sandboxes for what is not accounted for it ends
// this one.
func (a *Accounts) incomplete(ctx context.Context, bounds []string) error {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Exceeded, Rule: "quota.inventory", GuestClaimed: true,
		Reason: "not all packages on the sandbox's disk are on record: " + strings.Join(bounds, "; "),
	}
	a.markEnding(&r)
	a.decide(r)
	_, err := a.config.Book.Refuse(ctx, r)
	return err
}
