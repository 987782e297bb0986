package records

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// refusalKey tells which refusals are one: the first is recorded, the others are counted. It
// is of all that a reader is told of them, so that no record stands for another reason, and
// it is made from the record alone, so that a log restores it.
type refusalKey struct {
	told   told
	policy string // the digest of the one in force
}

// told is all that a reader is told of a refusal but when it was, and of which sandbox.
type told [sha256.Size]byte

// toldBy is what a record tells.
func toldBy(r audit.Record) told {
	r.Seq, r.Time, r.Clock, r.Count, r.RequestID = 0, time.Time{}, time.Time{}, 0, "" // of this one time
	r.Run, r.Sandbox, r.User, r.Token, r.Policy, r.Erased = "", "", "", "", "", false // one for all of a sandbox
	detail := maps.Clone(r.Detail)
	delete(detail, DetailEvent)
	delete(detail, DetailHappened)
	if r.Kind == audit.KindFinding { // the same value is found at many places of one output, and in many requests
		for _, key := range []string{DetailAt, DetailLength, DetailRequest} {
			delete(detail, key)
		}
	}
	if r.Detail = nil; len(detail) > 0 {
		r.Detail = detail
	}
	text, err := json.Marshal(r, json.Deterministic(true))
	if err != nil { // not reached: a record is text and numbers
		text = []byte(err.Error() + r.Reason)
	}
	return sha256.Sum256(text)
}

// refusalKeyOf is the key of a record of this sandbox, made or still to be made.
func (b *Book) refusalKeyOf(r audit.Record) refusalKey {
	key := refusalKey{told: toldBy(r), policy: r.Policy}
	if key.policy == "" {
		key.policy = b.config.Policy()
	}
	return key
}

// hostText is the name that a record of the network is about, with the port if it has one.
func hostText(r audit.Record) string {
	name := r.Detail[DetailName]
	if port := r.Detail[DetailPort]; port != "" {
		name += ":" + port
	}
	if request := r.Detail[DetailRequest]; request != "" {
		name += " " + request
	}
	return name
}

// refusal is one recorded refusal. Only the goroutine that made it writes
// record and err, before ready is closed; the counts are guarded by the
// book's mu.
type refusal struct {
	ready  chan struct{}
	err    error
	record audit.Record
	count  int // it and its repeats
	logged int // how many of these the log knows
	// inherited: it was of the sandbox that this one is a copy of.
	inherited bool
}

// Refuse records a refusal, or counts it if the same was recorded before.
func (b *Book) Refuse(ctx context.Context, r audit.Record) (audit.Record, error) {
	return b.recordOnce(ctx, r, b.showLast)
}

// Ask records that an upstream is about to be asked, or counts it if that was asked before.
func (b *Book) Ask(ctx context.Context, r audit.Record) error {
	_, err := b.recordOnce(ctx, r, func(*refusal) {})
	return err
}

// recordOnce records what is on record once, or counts it. recorded is called, with mu held, with
// what was recorded now.
func (b *Book) recordOnce(ctx context.Context, r audit.Record, recorded func(*refusal)) (audit.Record, error) {
	key := b.refusalKeyOf(r)
	b.mu.Lock()
	if known := b.refusals[key]; known != nil {
		b.mu.Unlock()
		return b.repeat(known)
	}
	mine := &refusal{ready: make(chan struct{}), count: 1, logged: 1}
	b.refusals[key] = mine
	b.mu.Unlock()

	mine.err = errLost // unless Append returns
	defer func() {
		b.mu.Lock()
		if mine.err != nil {
			delete(b.refusals, key)
		} else {
			recorded(mine)
		}
		b.mu.Unlock()
		close(mine.ready)
	}()
	mine.record, mine.err = b.Append(ctx, r)
	return mine.record, mine.err
}

var errLost = errors.New("the record was lost in a panic, of which the daemon's log has more")

// repeat waits until the first refusal of its kind is recorded, and counts. A
// page that is asked for again is shown again: what is wanted now may be what it
// withholds, and not all clients say so.
func (b *Book) repeat(r *refusal) (audit.Record, error) {
	<-r.ready // its time is bounded, and one that nobody waits for counts, too
	if r.err == nil {
		b.mu.Lock()
		r.count++
		if (r.record.Outcome == audit.Withheld || r.record.Outcome == audit.Pending) && !b.isShown(ProjectOf(r.record)) {
			b.showLast(r)
		}
		b.mu.Unlock()
	}
	return r.record, r.err
}

// showLast puts a refusal last, in the place of what was withheld of the project before, and drops
// the oldest past the limit; mu is held. A refusal that is dropped stays in the log, and its
// repeats are counted.
func (b *Book) showLast(r *refusal) {
	if r.record.Kind == audit.KindPackage {
		b.hideWithheld(RefOf(r.record)) // of a refused file more is known
		b.hidePending(RefOf(r.record))
	}
	if !r.inherited {
		same := toldBy(r.record)
		b.shown = slices.DeleteFunc(b.shown, func(old *refusal) bool { return old.inherited && toldBy(old.record) == same })
	}
	b.shown = append(b.shown, r)
	if most := b.config.Limits.Refusals; len(b.shown) > most {
		b.shown = slices.Delete(b.shown, 0, len(b.shown)-most)
	}
}

// isShown tells whether something about a project is shown; mu is held.
func (b *Book) isShown(project pkgref.Ref) bool {
	return slices.ContainsFunc(b.shown, func(r *refusal) bool { return ProjectOf(r.record) == project })
}

// hideWithheld stops showing what was withheld of a project, because a file of
// it was served or the verdict is another; mu is held.
func (b *Book) hideWithheld(p pkgref.Ref) {
	p.Version = ""
	b.shown = slices.DeleteFunc(b.shown, func(r *refusal) bool {
		return r.record.Outcome == audit.Withheld && RefOf(r.record) == p
	})
}

// Withheld are the records of what pages withheld, as far as it is shown, but for what was inherited.
func (b *Book) Withheld() []audit.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []audit.Record
	for _, r := range b.shown {
		if r.record.Outcome == audit.Withheld && !r.inherited {
			list = append(list, r.record)
		}
	}
	return list
}

// hidePending stops showing that a release waits, because it was answered, or
// waits for another request now; mu is held.
func (b *Book) hidePending(p pkgref.Ref) {
	b.shown = slices.DeleteFunc(b.shown, func(r *refusal) bool {
		return r.record.Outcome == audit.Pending && RefOf(r.record) == p
	})
}

// AlarmFirst orders what is an alarm before what is none.
func AlarmFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Refusals are the refusals that are shown, at most most (0: all), or those under a request's
// id, shown or not. served are the records of what the sandbox was served: what only leads
// to that was wanted by nobody.
func (b *Book) Refusals(request string, most int, served []audit.Record) []door.Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := []door.Refusal{}
	if request != "" {
		for _, r := range b.refusalsUnder(request) {
			list = append(list, r.public())
		}
		return list
	}
	if most <= 0 || most > len(b.shown) {
		most = len(b.shown)
	}
	wanted, had := Paths{}, NewHad()
	for _, r := range b.shown {
		wanted.Add(RefOf(r.record))
	}
	for _, r := range served {
		wanted.Add(RefOf(r))
		had.Take(r)
	}
	for _, r := range b.shown[len(b.shown)-most:] {
		if !IsProbe(r.record, wanted, had) {
			list = append(list, r.public())
		}
	}
	slices.SortStableFunc(list, func(a, b door.Refusal) int { return AlarmFirst(a.Alarm, b.Alarm) })
	return list
}

// refusalsUnder are the refusals with a request's id, the client's or the queue's; mu is held. A client is told the id of what a page withholds also where it
// got another release, and that is not shown any more.
func (b *Book) refusalsUnder(request string) []*refusal {
	var found []*refusal
	take := func(r *refusal) {
		if r.recorded() && r.record.Outcome != audit.Asked && (r.record.RequestID == request || r.record.Approval == request) && !slices.Contains(found, r) {
			found = append(found, r)
		}
	}
	for _, r := range b.refusals {
		take(r)
	}
	for _, r := range b.shown { // a refused command is in no other place
		take(r)
	}
	slices.SortFunc(found, func(a, b *refusal) int { return cmp.Compare(a.record.Seq, b.record.Seq) })
	return found
}

// recorded tells whether the refusal's record may be read.
func (r *refusal) recorded() bool {
	if r.ready == nil { // a command's
		return true
	}
	select {
	case <-r.ready:
		return r.err == nil
	default:
		return false
	}
}

// public is a refusal as its sandbox's agent may read it.
func (r *refusal) public() door.Refusal {
	rec := r.record
	out := door.Refusal{
		Time: rec.Time, Run: rec.Run, Sandbox: rec.Sandbox, Package: RefOf(rec), File: rec.File, What: WhatPackage, Name: rec.Detail[DetailName],
		Outcome: string(rec.Outcome), Rule: rec.Rule, Reason: rec.Reason,
		Suggest: rec.Detail[DetailSuggest], RequestID: rec.RequestID, Count: r.count,
		Alarm: rec.ConcernsAlarm(), Approval: rec.Approval,
	}
	switch {
	case rec.Kind == audit.KindNetwork:
		out.What, out.Name = WhatName, hostText(rec)
	case rec.Kind == audit.KindTool:
		out.What, out.Name = WhatTool, rec.Detail[DetailTool]
	case rec.Kind == audit.KindCommand:
		out.What = WhatCommand
	case rec.Detail[DetailWhat] != "":
		out.What = rec.Detail[DetailWhat]
	}
	if parents := rec.Detail[DetailWantedBy]; parents != "" {
		out.Reason = WithParents(out.Reason, parents)
	}
	switch {
	case rec.Outcome == audit.Pending:
		out.Reason += WaitsAs(rec.Approval)
	case Observed(rec):
		out.Reason += letThrough
	}
	return out
}
