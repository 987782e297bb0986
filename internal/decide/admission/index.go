package admission

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxIndexFiles bounds an index page; the largest projects have tens of
// thousands of files.
const maxIndexFiles = 200_000

// indexVerdict is what policy says about all files of one index page. It is
// constant once made and shared by all runs with the same policy and facts.
type indexVerdict struct {
	key      indexKey
	epoch    string
	from     time.Time // when it was judged
	until    time.Time // some verdict changes then; zero: none ever does
	verdicts []policy.Decision
	ofFile   []int
	page     *ledger.Page // the releases that it shows, and how
	withheld []audit.WithheldRange
	refusal  policy.Decision // the withheld verdict that says most: of the highest version
	lacking  map[string]bool // specifiers of requirements that no release which it shows satisfies, and one that it withholds does
	shown    int             // files
	bytes    int64           // that it takes, about
}

// Index implements Door.
func (c *Controller) Index(ctx context.Context, ask door.IndexAsk) (door.IndexAnswer, error) {
	t, err := c.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return door.IndexAnswer{}, err
	}
	if !pkgref.IsCanonicalName(ask.Package.Ecosystem, ask.Package.Name) || ask.Package.Version != "" || ask.IndexDigest == "" || len(ask.IndexDigest) > 200 {
		return door.IndexAnswer{}, fault.Invalid("an index is asked about by its package's canonical name and the page's digest, not by %q", redact.Cut(ask.Package.String(), 200))
	}
	if len(ask.Files) > maxIndexFiles {
		return door.IndexAnswer{}, fault.Invalid("the index of %s has %d files; at most %d are judged", ask.Package, len(ask.Files), maxIndexFiles)
	}
	v, err := c.verdict(ctx, t, ask)
	if err != nil {
		return door.IndexAnswer{}, err
	}
	if v == nil {
		return door.IndexAnswer{NeedFiles: true, NeedTimes: t.policy().NeedsTimes()}, nil
	}
	if ask.Files != nil && len(ask.Files) != len(v.ofFile) {
		return door.IndexAnswer{}, fault.Invalid("two pages with %d and %d files have one digest", len(ask.Files), len(v.ofFile))
	}
	if !ask.Walk {
		t.shown.Page(ask, t.ledger.Reserve)
	}
	out := door.IndexAnswer{Epoch: v.epoch, Verdicts: v.verdicts, OfFile: v.ofFile}
	if ask.Walk {
		out.WantEdges, err = t.sawPage(ask, v)
		return out, err
	}
	if len(v.withheld) > 0 {
		r, err := t.book.Refuse(ctx, withheldFrom(t, ask, v))
		if err != nil {
			return door.IndexAnswer{}, err
		}
		out.RequestID = r.RequestID
	} else if err := t.book.Show(ctx, shownPage(ask)); err != nil {
		return door.IndexAnswer{}, err
	}
	out.WantEdges, err = t.sawPage(ask, v)
	if err != nil {
		return door.IndexAnswer{}, err
	}
	return out, nil
}

// verdict judges a page, or remembers what was judged; nil: its files are needed.
func (c *Controller) verdict(ctx context.Context, t *tenant, ask door.IndexAsk) (*indexVerdict, error) {
	answers, err := t.known.answers(ctx, ask.Package)
	if err != nil {
		return nil, err
	}
	now := c.config.Clock.Read()
	from := ledger.Origin{Upstream: ask.Upstream, Toolchain: ask.Toolchain}
	edges := t.ledger.EdgesTo(ask.Package)
	law := t.policy()
	declared := t.ledger.Declares(ask.Package)
	key := indexKey{policy: lawKey(law), pkg: ask.Package, index: ask.IndexDigest, edges: edges.Epoch, declared: declared, facts: t.known.generation(from), jump: now.Jump().Round(clockStep), answers: answersEpoch(answers), plan: t.planSandbox(), loose: ask.Package.Ecosystem.Traits().OlderOnPages && t.ledger.Loose(ask.Package.Ecosystem)}
	if v := c.indexes.getVerdict(key, now.Now); v != nil || ask.Files == nil {
		return v, nil
	}
	about, err := t.known.subject(ask.Package, from)
	if err != nil {
		return unknownVerdict(key, now.Now, ask.Files), nil //nolint:nilerr // the verdict says it, and is recorded
	}
	about.Edges, about.Declared, about.Listing, about.Approvals = edges.List, declared, true, answers
	if key.loose {
		about.Below = highestRequired(judgeAt(law, now, about), ask)
	}
	v := t.known.judgePage(law, now, key, about, ask.Files)
	c.indexes.putVerdict(v)
	return v, nil
}

// planSandbox names a plan's sandbox in the keys of its index verdicts: they are not
// shared, so that the plan is told every page's files.
func (t *tenant) planSandbox() string {
	if t.shown == nil {
		return ""
	}
	return t.run.Sandbox
}

// sawPage remembers what the run was shown. wantEdges: what the shown releases
// require is not known yet.
func (t *tenant) sawPage(ask door.IndexAsk, v *indexVerdict) (wantEdges bool, err error) {
	few := !t.run.Plan && !t.policy().UsesEdges(ask.Package.Ecosystem)
	if few && !ask.Package.Ecosystem.Traits().RequirementsOnPages {
		return false, nil // nothing hangs on what its releases require
	}
	return t.ledger.ShowPage(ask.Package, ledger.Origin{Upstream: ask.Upstream, Toolchain: ask.Toolchain}, v.page, few)
}

// judgePage asks policy about every file; equal decisions share one place.
func (k knowledge) judgePage(p *policy.Policy, now clock.Reading, key indexKey, about policy.Subject, files []door.File) *indexVerdict {
	v := &indexVerdict{key: key, from: now.Now, ofFile: make([]int, len(files))}
	var page ledger.PageMaker
	places := map[verdictKey]int{}
	j, layers := judgeAt(p, now, about), p.Layers()
	for i, f := range files {
		facts := f.Facts()
		said := j.File(facts)
		d := k.settleDecision(planned(key.plan != "", said))
		k := verdictKeyOf(d)
		place, known := places[k]
		if !known {
			place = len(v.verdicts)
			places[k] = place
			v.verdicts = append(v.verdicts, d)
		}
		v.ofFile[i] = place
		if d.Shown() {
			v.shown++
			page.Add(f.Version, listed(said))
		}
		for _, l := range layers {
			v.until = earlier(v.until, nextChange(l, now, l.AgedFrom(facts)))
		}
	}
	v.dropPinAlarms(files)
	v.withheld, v.refusal = withheldRanges(key.pkg.Ecosystem, files, v)
	v.lacking = lacking(about.Edges, files, v)
	v.epoch = v.epochName()
	v.page = page.Page(key.index, v.epoch)
	v.bytes = v.sizeInMemory()
	return v
}

// sizeInMemory is about what a verdict takes in memory.
func (v *indexVerdict) sizeInMemory() int64 {
	size := v.page.Size() + int64(1_000+8*len(v.ofFile))
	for _, d := range v.verdicts {
		size += int64(300 + len(d.Reason) + len(d.Rule) + len(d.Suggest) + 100*len(d.WantedBy))
	}
	for specifier := range v.lacking {
		size += int64(60 + len(specifier))
	}
	for _, w := range v.withheld {
		size += int64(120 + len(w.Reason) + len(w.Rule) + len(w.From) + len(w.To))
	}
	return size
}

// listed is what a page that shows a file says of its release: a requirement of a
// name shows all releases of it, and admits only those within it.
func listed(said policy.Decision) ledger.Event {
	switch {
	case said.Effect == policy.Hold:
		return ledger.Event{Kind: ledger.Waits}
	case said.ResolvedBy == policy.ByDependency && said.Through == "":
		return ledger.Event{Kind: ledger.Listed}
	}
	return ledger.Event{Kind: ledger.Allowed, Through: said.Through}
}

// dropPinAlarms takes the alarm back for files that differ from the pinned ones in a
// release of which another file is a pinned one: a lockfile need not name all.
func (v *indexVerdict) dropPinAlarms(files []door.File) {
	some := shownVersions(files, v)
	calmed := map[int]int{}
	for i, f := range files {
		place := v.ofFile[i]
		if d := v.verdicts[place]; !d.Alarm || d.ResolvedBy != policy.ByLockfile || !some[f.Version] {
			continue
		}
		to, known := calmed[place]
		if !known {
			d := v.verdicts[place]
			d.Alarm = false
			to = len(v.verdicts)
			calmed[place] = to
			v.verdicts = append(v.verdicts, d)
		}
		v.ofFile[i] = to
	}
}

// epochName names the epoch by a digest over what the answer says and about which page, so that facts which
// change nothing give no new epoch.
func (v *indexVerdict) epochName() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%d\x00", v.key.policy, v.key.pkg, v.key.index, len(v.verdicts))
	for _, d := range v.verdicts {
		fmt.Fprintf(h, "%+v\x00", verdictKeyOf(d))
	}
	places := make([]byte, 0, 4*len(v.ofFile))
	for _, place := range v.ofFile {
		places = binary.BigEndian.AppendUint32(places, uint32(place)) // #nosec G115 -- an index of a slice
	}
	h.Write(places)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// verdictKey is a decision without its slice, which is the same for all files
// that it decides alike.
type verdictKey struct {
	effect, would    policy.Effect
	by               policy.ResolvedBy
	rule, reason     string
	through, suggest string
	pinned           string
	alarm, shown     bool
	wanted, approval string
}

func verdictKeyOf(d policy.Decision) verdictKey {
	k := verdictKey{effect: d.Effect, would: d.Would, by: d.ResolvedBy, rule: d.Rule, reason: d.Reason, through: d.Through, suggest: d.Suggest, pinned: d.Pinned, alarm: d.Alarm, shown: d.Unadmitted, approval: d.Approval}
	if len(d.WantedBy) > 0 {
		k.wanted = ledger.EpochOf(d.WantedBy)
	}
	return k
}

// extent says how much a range leaves out, in parentheses: versions, or of versions of
// which there is another file, files.
func extent(w audit.WithheldRange) string {
	between := w.From
	if w.To != w.From {
		between += " to " + w.To
	}
	switch {
	case w.Versions == 0 && w.Files == 1:
		return fmt.Sprintf(" (a file of %s, and not all)", between)
	case w.Versions == 0:
		return fmt.Sprintf(" (%d files of %s, and not all)", w.Files, between)
	case w.Versions == 1:
		return fmt.Sprintf(" (%s)", between)
	}
	return fmt.Sprintf(" (%d versions, %s)", w.Versions, between)
}

// withheldFrom is the record of what a page withholds from a sandbox.
func withheldFrom(t *tenant, ask door.IndexAsk, v *indexVerdict) audit.Record {
	pull, unmet := t.ledger.Pull(ask.Package, v.lacking)
	r := withheldRecord(ask, v, pull)
	explainUnmet(&r, t.policy(), unmet)
	return r
}

// withheldRecord is the record of what an index leaves out of a project to which the run's
// clients are led so.
func withheldRecord(ask door.IndexAsk, v *indexVerdict, pull ledger.Pull) audit.Record {
	what, reason := records.WhatPackage, v.refusal.Reason
	if v.shown > 0 {
		what = records.WhatIndex
		reason = v.refusal.Reason + extent(v.withheld[len(v.withheld)-1])
	}
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Withheld, SourceURL: redact.Cut(ask.SourceURL, 2_048),
		ResolvedBy: string(v.refusal.ResolvedBy), Rule: v.refusal.Rule, Reason: reason,
		Withheld: slices.Clone(v.withheld),
		Detail:   map[string]string{records.DetailIndex: ask.IndexDigest, records.DetailWhat: what, records.DetailPull: string(pull)},
	}
	records.SetRef(&r, ask.Package)
	d := v.refusal
	if v.shown > 0 && d.ResolvedBy != policy.ByLockfile {
		d.Alarm = false // some old release of it is malware, and nobody gets that
	}
	records.Explain(&r, d)
	return r
}

// highestRequired is the highest release on a page that a requirement admits.
func highestRequired(j *policy.Judge, ask door.IndexAsk) string {
	var highest pkgref.Version
	for _, f := range ask.Files {
		v, ok := pkgref.ParseVersion(ask.Package.Ecosystem, f.Version)
		if ok && v.CompareSpelled(highest) > 0 && j.Release(f.Version).ResolvedBy == policy.ByDependency {
			highest = v
		}
	}
	return highest.String()
}

// unknownVerdict withholds all of a page. It is not remembered: the facts may be
// mended at any moment.
func unknownVerdict(key indexKey, now time.Time, files []door.File) *indexVerdict {
	v := &indexVerdict{key: key, from: now, verdicts: []policy.Decision{unknownDecision()}, ofFile: make([]int, len(files))}
	v.withheld, v.refusal = withheldRanges(key.pkg.Ecosystem, files, v)
	v.epoch = v.epochName()
	v.page = new(ledger.PageMaker).Page(key.index, v.epoch)
	return v
}
