// Package provenance accounts for what is on a sandbox's disk: which packages the guest lists, and
// which record says where each came from. All that the guest says is recorded as its claim.
package provenance

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// accounting is how a package that is found on a disk got there.
type accounting string

const (
	howServed      accounting = ""            // a file of it was served
	howBundled     accounting = "bundled"     // it came inside of a file that was served
	howTemplate    accounting = "template"    // a copy of what the template brings
	howLocal       accounting = "local"       // written in the sandbox, or on a mount
	howEarlier     accounting = "earlier"     // byte for byte what was served to an earlier run
	howUncertain   accounting = "uncertain"   // on a mount that was not listed whole
	howUnaccounted accounting = "unaccounted" // no record says where it came from
)

// Keys of Record.Detail, of installed records and of alarms about them.
const (
	detailPath    = "path"
	detailClaimed = "claimed" // the fields that come from inside of the sandbox
	DetailOrigin  = "origin"  // accounting, where nothing was served
	detailFrom    = "from"    // the directory, or the built file, from which it was installed
	detailEnds    = "ends"    // of an alarm: "true", the sandbox is ended for it
)

// RuleUnaccounted is of records about what no record accounts for.
const RuleUnaccounted = "packages.unaccounted"

// claimedFields are those of an installed record that come from inside of the
// sandbox; the others are those of the record that the file was served by.
const claimedFields = "package_name installed_version path"

// Config is what Accounts are made of.
type Config struct {
	Book   *records.Book
	Served *records.Deliveries
	Policy func() *policy.Policy // the one in force
	Most   int                   // newly found packages that are recorded at one time
	// Earlier are the records of a release that earlier runs were served, as far as this
	// run may have what they are about; nil: it is told nothing of others.
	Earlier func(ctx context.Context, release pkgref.Ref) ([]audit.Record, error)
	Sandbox string       // for Logger
	Logger  *slog.Logger // for the operator
}

// Accounts are what is on record of one sandbox's disk, and how it comes there. Safe for
// concurrent use.
type Accounts struct {
	config Config

	mu       sync.Mutex             // guards all below; not held while the log is written
	called   map[pkgref.Ref]Package // what was found, by the release's one key
	recorded map[entryKey]bool
	alarmed  map[pkgref.Ref]bool // releases with an alarm
	known    map[placed]bool     // what was recognised, so that it is not asked about again
	end      string              // why the sandbox is to be ended; "": it is not
}

// entryKey: a release that was found in two ways is two entries, so that a copy
// of unknown origin is not hidden by one of known origin.
type entryKey struct {
	release pkgref.Ref
	how     accounting
}

// New makes the accounts of a disk on which nothing was found.
func New(config Config) *Accounts {
	return &Accounts{config: config, called: map[pkgref.Ref]Package{}, recorded: map[entryKey]bool{}, alarmed: map[pkgref.Ref]bool{}, known: map[placed]bool{}}
}

// Take notes a record, one just made or one of the log.
func (a *Accounts) Take(r audit.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	release := records.RefOf(r).Release()
	if r.Outcome == audit.Installed {
		how := accounting(r.Detail[DetailOrigin])
		if r.Detail[records.DetailUnaccounted] != "" && how == "" {
			how = howUnaccounted
		}
		a.recorded[entryKey{release, how}] = true
		if known, there := a.called[release]; !there || known.SHA256 == "" {
			a.called[release] = Package{Ref: records.RefOf(r), SHA256: r.SHA256}
		}
	}
	if r.Outcome == audit.Alarm {
		a.alarmed[release] = true
	}
	a.decideLocked(r)
}

// decide takes from a record, made or still to be made, whether the sandbox is to be ended.
func (a *Accounts) decide(r audit.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decideLocked(r)
}

// decideLocked needs mu.
func (a *Accounts) decideLocked(r audit.Record) {
	if r.Detail[detailEnds] != "" {
		a.end = r.Reason
	}
}

// End is why the sandbox is to be ended, a sentence; "": it is not.
func (a *Accounts) End() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.end
}

// Package is a release that was found, under the name and version that it was served with,
// also where the disk spells them in another way.
type Package struct {
	Ref    pkgref.Ref
	SHA256 string // of the file that was served; "": none was
}

// Packages are those that were found, whether or not they are still there, each once.
func (a *Accounts) Packages() []Package {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.called))
}

// EndedFor is why a sandbox was ended, if it was for this record.
func EndedFor(r audit.Record) string {
	if r.Detail[detailEnds] == "" {
		return ""
	}
	return r.Reason + " (packages.unaccounted: end)"
}

// markEnding marks a record for which the policy ends the sandbox.
func (a *Accounts) markEnding(r *audit.Record) {
	if a.config.Policy().Unaccounted() != policy.UnaccountedEnd {
		return
	}
	if r.Detail == nil {
		r.Detail = map[string]string{}
	}
	r.Detail[detailEnds] = "true"
}

// finding is a package on the disk and where it came from.
type finding struct {
	item
	how    accounting
	served *audit.Record // of a file of it, to this run or to an earlier one; nil: none was
	origin string
	// recognised tells that what lies there was compared, see recognise, and uncompared
	// that it was to be, and the guest did not answer.
	recognised, uncompared bool
}

func (f finding) keyOfFinding() entryKey { return entryKey{f.release, f.how} }

// installedRecord is the finding's installed record.
func (f finding) installedRecord() audit.Record {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Installed, GuestClaimed: true,
		Detail: map[string]string{detailPath: redact.Cut(f.Path, 4_096), detailClaimed: claimedFields},
	}
	records.SetRef(&r, f.ref)
	if f.how != howServed {
		r.Detail[DetailOrigin] = string(f.how)
	}
	switch f.how {
	case howServed, howEarlier:
		s := f.served
		r.InstalledVersion, r.SourceURL, r.SHA256, r.File, r.Size = s.InstalledVersion, s.SourceURL, s.SHA256, s.File, s.Size
		r.RequestedVersion, r.RequestedClaimed, r.ResolvedBy, r.Rule, r.RequestID = s.RequestedVersion, s.RequestedClaimed, s.ResolvedBy, s.Rule, s.RequestID
		r.Approval = s.Approval
		if f.how == howEarlier {
			r.Detail[records.DetailServed] = strconv.FormatUint(s.Seq, 10)
			r.Reason = "nothing of it was served to this sandbox, but it is byte for byte what was served to an earlier run"
		}
	case howBundled:
		r.Detail[records.DetailBundledIn] = f.origin
		r.Reason = "it came inside of " + f.origin
	case howTemplate:
		r.Reason = "it is a copy of what the template brings"
	case howLocal:
		if f.origin != "" {
			r.Detail[detailFrom] = redact.Cut(f.origin, 4_096)
		}
		r.Reason = "it is written here: it came from a directory of the sandbox, and from no registry"
	case howUncertain:
		r.Detail[records.DetailUnaccounted] = "true"
		r.Reason = "nothing of it was served to this sandbox, but it lies on a mount that had more packages before the first command than could be listed"
	case howUnaccounted:
		r.Detail[records.DetailUnaccounted], r.Rule = "true", RuleUnaccounted
		r.Reason = "it is on the sandbox's disk, but nothing of it was served to this sandbox" + f.whyUnknown()
	}
	return r
}

// whyUnknown follows the reason of what is unaccounted for.
func (f finding) whyUnknown() string {
	if f.uncompared {
		return "; the sandbox did not answer when it was to be compared with what earlier runs were served"
	}
	return ""
}

// alarmRecord is the alarm about a package that is not accounted for.
func (f finding) alarmRecord() audit.Record {
	r := f.installedRecord()
	r.Outcome = audit.Alarm
	r.Reason = fmt.Sprintf("%s is on the sandbox's disk, but was never served to it", f.ref) + f.whyUnknown()
	r.Detail = maps.Clone(r.Detail)
	r.Detail[records.DetailAlarm] = "true"
	return r
}
