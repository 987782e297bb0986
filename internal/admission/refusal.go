package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// What a refusal is about, for `cofferdam why`.
const (
	whatPackage = "package" // a file, or all of a project's files
	whatIndex   = "index"   // some of a project's files
	whatName    = "name"
	whatCommand = "command"
)

// Keys of Record.Detail.
const (
	detailSuggest   = "suggest"   // policy lines that would allow it
	detailWantedBy  = "wanted_by" // allowed parents, for people
	detailWants     = "wants"     // the specifiers of the first few, wantsBetween between
	detailParents   = "parents"   // the projects of those, canonical names with spaces between
	detailExtras    = "extras"    // what only extras bring that nothing asks for: "rich[jupyter]", with spaces between
	detailWhat      = "what"      // of a withheld record: package or index
	detailIndex     = "index_digest"
	detailName      = "name"       // of a network record
	detailThrough   = "through"    // of a served record: Decision.Through
	detailServed    = "served_seq" // of an aborted record
	detailEvent     = "event"
	detailKind      = "kind"       // of a refusal: what was asked for, if it was no file that could be installed
	detailAlarm     = "alarm"      // "true": more than a refusal, see policy.Decision
	detailBundled   = "bundled"    // of a served record: packages inside the file
	detailBundledIn = "bundled_in" // of an installed record: the release that brought it
	detailConsists  = "contents"   // of a served record: the digest of what the file is once it is unpacked
	detailFindings  = "findings"   // of a served record: peculiarities
	// detailUpstreamDigest is of a served record: the digest by the upstream or a
	// witness, where it is not the sha256.
	detailUpstreamDigest = "upstream_digest"
	eventRepeats         = "repeats"     // the record stands for repeats of an earlier one
	detailUnaccounted    = "unaccounted" // of an installed record: nothing of it was served
)

// refusalKey tells which refusals are one: the first is recorded, the others
// are counted. It is made from the record alone, so that a log restores it.
type refusalKey struct {
	outcome audit.Outcome
	pkg     pkgref.Ref
	file    string
	rule    string
	more    string
}

func keyOf(r audit.Record) refusalKey {
	key := refusalKey{outcome: r.Outcome, pkg: refOf(r), file: r.File, rule: r.Rule}
	switch {
	case r.Outcome == audit.Withheld:
		key.more = r.Detail[detailIndex] + rangesKey(r.Withheld)
	case r.Outcome == audit.Pending:
		key.file, key.more = "", r.Approval
	case r.Outcome == audit.Failed, r.Kind == audit.KindPackage && r.Package == "":
		key.more = r.Reason
	case r.Kind == audit.KindNetwork:
		key.more = r.Detail[detailName]
	}
	return key
}

// rangesKey names what a record withholds; the reasons follow from it.
func rangesKey(ranges []audit.WithheldRange) string {
	b, err := json.Marshal(ranges)
	if err != nil {
		return ""
	}
	return string(b)
}

func refOf(r audit.Record) pkgref.Ref {
	return pkgref.Ref{Ecosystem: pkgref.Ecosystem(r.Ecosystem), Name: r.Package, Version: r.InstalledVersion}
}

// setRef puts a package into a record.
func setRef(r *audit.Record, p pkgref.Ref) {
	r.Ecosystem, r.Package, r.InstalledVersion = string(p.Ecosystem), p.Name, p.Version
}

// refusal is one recorded refusal. Only the goroutine that made it writes
// record and err, before ready is closed; the counts are guarded by the
// tenant's mu.
type refusal struct {
	ready  chan struct{}
	err    error
	record audit.Record
	count  int // it and its repeats
	told   int // how many of these the log knows
	// inherited: it was of the sandbox that this one is a copy of.
	inherited bool
}

// refuse records a refusal, or counts it if the same was recorded before.
func (c *Controller) refuse(ctx context.Context, t *tenant, r audit.Record) (audit.Record, error) {
	key := keyOf(r)
	t.mu.Lock()
	if known := t.refusals[key]; known != nil {
		t.mu.Unlock()
		return known.repeat(ctx, t, c.config.Limits.Refusals)
	}
	mine := &refusal{ready: make(chan struct{}), count: 1, told: 1}
	t.refusals[key] = mine
	t.mu.Unlock()

	mine.record, mine.err = c.record(ctx, t, r)
	t.mu.Lock()
	if mine.err != nil {
		delete(t.refusals, key)
	} else {
		t.show(mine, c.config.Limits.Refusals)
	}
	t.mu.Unlock()
	close(mine.ready)
	return mine.record, mine.err
}

// repeat waits until the first refusal of its kind is recorded, and counts. A
// page that is asked for again is shown again: what is wanted now may be what it
// withholds, and not all clients say so.
func (r *refusal) repeat(ctx context.Context, t *tenant, limit int) (audit.Record, error) {
	select {
	case <-r.ready:
	case <-ctx.Done():
		return audit.Record{}, ctx.Err()
	}
	if r.err == nil {
		t.mu.Lock()
		r.count++
		if (r.record.Outcome == audit.Withheld || r.record.Outcome == audit.Pending) && !t.shows(projectOf(r.record)) {
			t.show(r, limit)
		}
		t.mu.Unlock()
	}
	return r.record, r.err
}

// show puts a refusal last, in the place of what was withheld of the project
// before, and drops the oldest past the limit; the tenant's mu is held. What is
// dropped stays in the log, and its repeats are counted.
func (t *tenant) show(r *refusal, limit int) {
	if r.record.Kind == audit.KindPackage {
		t.hideWithheld(refOf(r.record)) // of a refused file more is known
		t.hidePending(refOf(r.record))
	}
	if !r.inherited {
		key := keyOf(r.record)
		t.shown = slices.DeleteFunc(t.shown, func(old *refusal) bool { return old.inherited && keyOf(old.record) == key })
	}
	t.shown = append(t.shown, r)
	if len(t.shown) > limit {
		t.shown = slices.Delete(t.shown, 0, len(t.shown)-limit)
	}
}

// shows tells whether something about a project is shown; the tenant's mu is held.
func (t *tenant) shows(project pkgref.Ref) bool {
	return slices.ContainsFunc(t.shown, func(r *refusal) bool { return projectOf(r.record) == project })
}

// hideWithheld stops showing what was withheld of a project, because a file of
// it was served or the verdict is another; the tenant's mu is held.
func (t *tenant) hideWithheld(p pkgref.Ref) {
	p.Version = ""
	t.shown = slices.DeleteFunc(t.shown, func(r *refusal) bool {
		return r.record.Outcome == audit.Withheld && refOf(r.record) == p
	})
}

// hidePending stops showing that a release waits, because it was answered, or
// waits for another request now; the tenant's mu is held.
func (t *tenant) hidePending(p pkgref.Ref) {
	t.shown = slices.DeleteFunc(t.shown, func(r *refusal) bool {
		return r.record.Outcome == audit.Pending && refOf(r.record) == p
	})
}

func alarmFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// withParents names who wanted a package, in place of the policy's shorter word
// for it.
func withParents(reason, parents string) string {
	if strings.HasSuffix(reason, ", which nothing asks for") {
		return reason // it names the parent, and why that does not do
	}
	if i := strings.LastIndex(reason, "; "); i >= 0 && strings.HasSuffix(reason, " requires it") {
		reason = reason[:i]
	}
	return reason + "; wanted by " + parents
}

// explain puts into a record what only a refusal has: the lines that would
// allow it, who wanted it, what a lockfile says, and whether it is an alarm.
func explain(r *audit.Record, d policy.Decision) {
	detail := maps.Clone(r.Detail)
	if detail == nil {
		detail = map[string]string{}
	}
	if d.Suggest != "" {
		detail[detailSuggest] = clip(d.Suggest, 4_096)
	}
	if wanted := wantedBy(d.WantedBy); wanted != "" {
		detail[detailWantedBy] = wanted
		detail[detailParents] = parents(d.WantedBy)
		if unasked := extrasOf(d.WantedBy); unasked != "" {
			detail[detailExtras] = unasked
		}
		if specifiers := wants(d.WantedBy); specifiers != "" {
			detail[detailWants] = clip(specifiers, 1_024)
		}
	}
	if d.Alarm {
		detail[detailAlarm] = "true"
	}
	if len(detail) > 0 {
		r.Detail = detail
	}
	r.RequestedVersion = clip(d.Pinned, 512)
}

// wantedBy names the first few parents: "rich 13.0.1 (pygments >=2.13)".
func wantedBy(edges []policy.Edge) string {
	const most = 3
	text := ""
	for i, e := range edges {
		if i == most {
			return text + " and others"
		}
		if i > 0 {
			text += ", "
		}
		text += e.Parent.Name + " " + e.Parent.Version
		if e.Specifier != "" {
			text += " (" + e.Name + " " + clip(e.Specifier, 100) + ")"
		}
	}
	return text
}

// wantsBetween is between the specifiers of detailWants; none has it.
const wantsBetween = "; "

// wants are the specifiers of the first few parents, those that take any version left
// out.
func wants(edges []policy.Edge) string {
	var specifiers []string
	for _, e := range edges[:min(len(edges), 3)] {
		if e.Specifier != "" && !strings.Contains(e.Specifier, ";") && !slices.Contains(specifiers, e.Specifier) {
			specifiers = append(specifiers, e.Specifier)
		}
	}
	return strings.Join(specifiers, wantsBetween)
}

// parents names the projects of the first few parents.
func parents(edges []policy.Edge) string {
	var names []string
	for _, e := range edges[:min(len(edges), 3)] {
		if !slices.Contains(names, e.Parent.Name) {
			names = append(names, e.Parent.Name)
		}
	}
	return strings.Join(names, " ")
}

// summarise records how often refusals were repeated since they were recorded,
// a record for each.
func (c *Controller) summarise(ctx context.Context, t *tenant) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(64) // so that many share one write to the disk
	for _, r := range t.repeats() {
		group.Go(func() error {
			return errand.Try(func() error {
				_, err := c.record(ctx, t, r)
				return err
			})
		})
	}
	return group.Wait()
}

func (t *tenant) repeats() []audit.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []audit.Record
	for _, r := range t.refusals {
		if r.count == r.told {
			continue
		}
		rec := r.record
		rec.Seq, rec.Time, rec.Count = 0, time.Time{}, r.count-r.told
		rec.Detail = maps.Clone(rec.Detail)
		if rec.Detail == nil {
			rec.Detail = map[string]string{}
		}
		rec.Detail[detailEvent] = eventRepeats
		all = append(all, rec)
		r.told = r.count
	}
	slices.SortFunc(all, func(a, b audit.Record) int { return cmp.Compare(a.RequestID, b.RequestID) })
	return all
}
