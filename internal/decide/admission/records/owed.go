package records

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// A record of what has happened that the log does not take is owed to it (see custodyOf). The Book keeps
// it, and writes it before its next record, with what Summarise writes as its sandbox ends, and after that
// (see admission's overdue).

// maxOwed is how many records of one sandbox are kept. Past it they are counted, and the log has the
// count.
const maxOwed = 1_024

// EventDropped is the event of the record that tells how many records of a sandbox, or of how many
// sandboxes records, were not kept until the log took them.
const EventDropped = "records_dropped"

// owed is a record that the log did not take.
type owed struct {
	record audit.Record
	key    refusalKey // of a refusal; zero: it is none
	used   *int       // of the quota in which it has its place; nil: in none
	// writing: the log may have it already, so that no repeat is counted into it.
	writing bool
}

// maxOwedLater is how many of them may be kept by AppendLater, so that what is one of many leaves room for
// what comes after it.
const maxOwedLater = maxOwed / 2

// keptError is that of a record which is owed.
type keptError struct {
	err     error
	counted bool // there are too many: only that there was one is owed
}

func (e *keptError) Error() string { return e.err.Error() }

func (e *keptError) Unwrap() error { return e.err }

// Kept reports whether err is nil, or that of a record that is written later: it need not be told
// again.
func Kept(err error) bool {
	if err == nil {
		return true
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok { // each of them
		return !slices.ContainsFunc(many.Unwrap(), func(one error) bool { return !Kept(one) })
	}
	_, kept := errors.AsType[*keptError](err)
	return kept
}

// Counted reports whether err is that of a record of which only that there was one is written later: who
// can find again what it tells may do so.
func Counted(err error) bool {
	kept, ok := errors.AsType[*keptError](err)
	return ok && kept.counted
}

// oweRecord keeps a record. The same refusal is kept once, with its count. false: there are as many as
// there may be, so that it is only counted that there was one; mu is held.
func (b *Book) oweRecord(r audit.Record, used *int, most int) (kept bool) {
	if b.config.OnOwed != nil {
		b.config.OnOwed(b)
	}
	one := owed{record: r, used: used}
	one.record.Detail = maps.Clone(r.Detail)
	if one.record.Detail == nil {
		one.record.Detail = map[string]string{}
	}
	one.record.Detail[DetailHappened] = time.Now().UTC().Format(time.RFC3339)
	if r.Outcome == audit.Blocked || r.Outcome == audit.Exceeded {
		one.key = b.refusalKeyOf(r)
		for i := range b.owed {
			if b.owed[i].key == one.key && !b.owed[i].writing {
				b.owed[i].record.Count = max(1, b.owed[i].record.Count) + 1
				b.unquota(one)
				return true
			}
		}
	}
	if len(b.owed) >= most {
		b.dropped++
		b.unquota(one)
		return false
	}
	b.owed = append(b.owed, one)
	return true
}

// unquota gives the place of a record back that is not written; mu is held.
func (b *Book) unquota(one owed) {
	if one.used != nil {
		*one.used--
	}
}

// Owes reports whether there are records that the log did not take.
func (b *Book) Owes() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.owed) > 0 || b.dropped > 0
}

// OwesEnd reports whether the end of what a record began is owed: by the number of that record, or, of a
// command, by its id.
func (b *Book) OwesEnd(kind audit.Kind, began uint64, command string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.owed, func(one owed) bool {
		r := one.record
		switch {
		case r.Kind != kind || r.Outcome != audit.Finished && r.Outcome != audit.Failed && r.Outcome != audit.Aborted:
			return false
		case command != "":
			return r.Detail[DetailCommand] == command
		default:
			return r.Detail[DetailBegan] == strconv.FormatUint(began, 10)
		}
	})
}

// tryOwed writes what is owed, unless somebody does so already.
func (b *Book) tryOwed(ctx context.Context) {
	if b.Owes() && b.summing.TryLock() {
		defer b.summing.Unlock()
		_ = b.writeOwed(ctx) // what the log does not take is still owed
	}
}

// WriteOwed writes the records that the log did not take, up to the first that it does not take now.
func (b *Book) WriteOwed(ctx context.Context) error {
	b.summing.Lock()
	defer b.summing.Unlock()
	return b.writeOwed(ctx)
}

// writeOwed needs summing.
func (b *Book) writeOwed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendTime)
	defer cancel()
	for {
		b.mu.Lock()
		if len(b.owed) == 0 {
			dropped := b.dropped
			b.mu.Unlock()
			return b.writeDropped(ctx, dropped)
		}
		one := b.owed[0]
		b.owed[0].writing = true // it stays until the log has it: see OwesEnd
		b.mu.Unlock()
		r, err := b.config.Log.Append(ctx, one.record)
		b.mu.Lock()
		b.owed[0].writing = false
		switch {
		case err == nil:
			b.owed = b.owed[1:]
			b.noteSeq(r.Seq)
			b.replaceOwed(one, r)
		case errors.Is(err, fault.ErrInvalid): // no log takes it
			b.owed = b.owed[1:]
			b.dropped++
		}
		b.mu.Unlock()
		if err != nil && !errors.Is(err, fault.ErrInvalid) {
			return err
		}
	}
}

// replaceOwed takes a refusal that is on record late for one that was recorded in time; mu is held.
func (b *Book) replaceOwed(one owed, r audit.Record) {
	if one.key == (refusalKey{}) || b.refusals[one.key] != nil {
		return
	}
	r.Detail = maps.Clone(r.Detail)
	delete(r.Detail, DetailHappened) // its repeats did not
	f := &refusal{ready: make(chan struct{}), record: r, count: max(1, r.Count), logged: max(1, r.Count)}
	close(f.ready)
	b.refusals[one.key] = f
	b.showLast(f)
}

// writeDropped records how many records were not kept.
func (b *Book) writeDropped(ctx context.Context, dropped int) error {
	if dropped == 0 {
		return nil
	}
	_, err := b.config.Log.Append(ctx, audit.Record{
		Kind: audit.KindDaemon, Outcome: audit.Failed, Run: b.config.Run, Sandbox: b.config.Sandbox, Policy: b.config.Policy(), User: b.config.User, Token: b.config.Token,
		Count: dropped, Detail: map[string]string{DetailEvent: EventDropped},
		Reason: "while the log took no records, " + strconv.Itoa(dropped) + " of this sandbox were not kept",
	})
	if err == nil {
		b.mu.Lock()
		b.dropped -= dropped
		b.mu.Unlock()
	}
	return err
}

// Summarise records how often refusals, and questions to upstreams, were repeated since they
// were recorded, a record for each, and before them what is owed. Those that can't be written now are counted on.
func (b *Book) Summarise(ctx context.Context) error {
	return b.summarise(ctx, func(all []repeated) []repeated { return all })
}

// mostGrown is how many repeats SummariseGrown records.
const mostGrown = 64

// SummariseGrown is Summarise of what a crash must not take, for now and then: of the repeats that are
// as many as the log knows already, the most. So the log knows at least half of what it would know, and
// of a guest that asks a million times it gets some twenty records.
func (b *Book) SummariseGrown(ctx context.Context) error {
	return b.summarise(ctx, func(all []repeated) []repeated {
		all = slices.DeleteFunc(all, func(one repeated) bool { return one.record.Count < one.logged })
		slices.SortFunc(all, func(a, b repeated) int { return cmp.Compare(b.record.Count, a.record.Count) })
		return all[:min(len(all), mostGrown)]
	})
}

// Unsummarised reports whether Summarise would record something.
func (b *Book) Unsummarised() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.owed) > 0 || b.dropped > 0 {
		return true
	}
	for _, r := range b.refusals {
		if r.count != r.logged {
			return true
		}
	}
	return false
}

func (b *Book) summarise(ctx context.Context, some func([]repeated) []repeated) error {
	b.summing.Lock() // or two would write the same repeats
	defer b.summing.Unlock()
	if err := b.writeOwed(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(context.WithoutCancel(ctx))
	group.SetLimit(64) // so that many share one write to the disk
	for _, one := range some(b.repeats()) {
		if ctx.Err() != nil { // each of the rest could wait as long for a log that hangs
			break
		}
		group.Go(func() error {
			return safego.Try(func() error {
				_, err := b.Append(ctx, one.record)
				if err == nil {
					b.mu.Lock()
					defer b.mu.Unlock()
					one.of.logged += one.record.Count
				}
				return err
			})
		})
	}
	return group.Wait()
}

// repeated are repeats that the log does not know, and their record.
type repeated struct {
	of     *refusal
	record audit.Record
	logged int // how many the log knows
}

func (b *Book) repeats() []repeated {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []repeated
	for _, r := range b.refusals {
		if r.count == r.logged {
			continue
		}
		rec := r.record
		rec.Seq, rec.Time, rec.Count = 0, time.Time{}, r.count-r.logged
		rec.Detail = maps.Clone(rec.Detail)
		if rec.Detail == nil {
			rec.Detail = map[string]string{}
		}
		rec.Detail[DetailEvent] = EventRepeats
		all = append(all, repeated{r, rec, r.logged})
	}
	slices.SortFunc(all, func(a, b repeated) int { return cmp.Compare(a.record.RequestID, b.record.RequestID) })
	return all
}
