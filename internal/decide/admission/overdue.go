package admission

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxOverdue is of how many sandboxes that have ended what could not be written is kept.
const maxOverdue = 1_024

// overdue is what could not be written because the log took no records: what the books of sandboxes
// owe, and of sandboxes that have ended meanwhile how often refusals were repeated, and their ends. It is
// written when the log takes records again.
type overdue struct {
	log     audit.Log
	writing sync.Mutex // held while they are written; taken before mu

	mu      sync.Mutex // guards all below
	owing   []*records.Book
	books   []*records.Book // of sandboxes that have ended
	ends    []overdueEnd
	loose   []audit.Record // of no sandbox
	dropped int            // books, ends and records that are not kept
}

// overdueEnd is the end of a sandbox that is not on record.
type overdueEnd struct {
	sandbox, reason string
	first           uint64
}

// keepOwing keeps a book that owes records.
func (o *overdue) keepOwing(b *records.Book) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.owing, b) {
		o.owing = bounded(o, append(o.owing, b))
	}
}

// keepBook keeps the book of a sandbox that has ended until all of it is on record.
func (o *overdue) keepBook(b *records.Book) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.books, b) {
		o.books = bounded(o, append(o.books, b))
	}
}

// keepEnd keeps the end of a sandbox, whose first reason counts.
func (o *overdue) keepEnd(e overdueEnd) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.ContainsFunc(o.ends, func(one overdueEnd) bool { return one.sandbox == e.sandbox }) {
		o.ends = bounded(o, append(o.ends, e))
	}
}

// keepRecord keeps a record of no sandbox.
func (o *overdue) keepRecord(r audit.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loose = bounded(o, append(o.loose, r))
}

// bounded is all without the oldest past the limit, which are counted; mu is held.
func bounded[T any](o *overdue, all []T) []T {
	past := max(0, len(all)-maxOverdue)
	o.dropped += past
	return slices.Clone(all[past:])
}

// writeOverdue writes what it can, up to the first that can't be written: the others would not be
// either. One who comes while another writes does not wait. end puts a sandbox's end on record, if it is
// not there.
func (o *overdue) writeOverdue(ctx context.Context, end func(context.Context, overdueEnd) error) {
	if !o.writing.TryLock() {
		return
	}
	defer o.writing.Unlock()
	for _, some := range []func(context.Context) error{
		each(o, &o.owing, func(ctx context.Context, b *records.Book) error { return b.WriteOwed(ctx) }),
		each(o, &o.books, func(ctx context.Context, b *records.Book) error { return b.Summarise(ctx) }),
		each(o, &o.ends, end), // after what they are the ends of
		each(o, &o.loose, o.append),
		o.writeDropped,
	} {
		if some(ctx) != nil { // it is tried again
			return
		}
	}
}

// owesEnd reports whether a book of a sandbox, registered or not, owes the end of what a record began.
func (o *overdue) owesEnd(kind audit.Kind, sandbox string, began uint64, command string) bool {
	o.writing.Lock() // a book that is being written is in no list
	defer o.writing.Unlock()
	o.mu.Lock()
	books := slices.Concat(o.owing, o.books)
	o.mu.Unlock() // a book takes its own lock before this one
	return slices.ContainsFunc(books, func(b *records.Book) bool {
		return b.Sandbox() == sandbox && b.OwesEnd(kind, began, command)
	})
}

// keepsEnd reports whether the end of a sandbox is kept.
func (o *overdue) keepsEnd(sandbox string) bool {
	o.writing.Lock() // one that is being written is not in the list
	defer o.writing.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.ends, func(one overdueEnd) bool { return one.sandbox == sandbox })
}

func (o *overdue) append(ctx context.Context, r audit.Record) error {
	_, err := o.log.Append(ctx, r)
	if errors.Is(err, fault.ErrInvalid) { // no log takes it, and it must not keep the rest waiting
		o.mu.Lock()
		o.dropped++
		o.mu.Unlock()
		return nil
	}
	return err
}

// each writes those of a list that can be.
func each[T any](o *overdue, list *[]T, write func(context.Context, T) error) func(context.Context) error {
	return func(ctx context.Context) error { return writeEach(ctx, o, list, write) }
}

// writeEach writes those of a list that can be, in their order. Meanwhile more can come at its end,
// and the oldest be dropped.
func writeEach[T any](ctx context.Context, o *overdue, list *[]T, write func(context.Context, T) error) error {
	for {
		o.mu.Lock()
		if len(*list) == 0 {
			o.mu.Unlock()
			return nil
		}
		one := (*list)[0]
		*list = (*list)[1:]
		o.mu.Unlock()
		if err := write(ctx, one); err != nil {
			o.mu.Lock()
			*list = slices.Insert(*list, 0, one)
			o.mu.Unlock()
			return err
		}
	}
}

// writeDropped records of how many sandboxes something is missing.
func (o *overdue) writeDropped(ctx context.Context) error {
	o.mu.Lock()
	dropped := o.dropped
	o.mu.Unlock()
	if dropped == 0 {
		return nil
	}
	_, err := o.log.Append(ctx, audit.Record{
		Kind: audit.KindDaemon, Outcome: audit.Failed, Count: dropped, Detail: map[string]string{records.DetailEvent: records.EventDropped},
		Reason: "while the log took no records, what " + strconv.Itoa(dropped) + " sandboxes that ended, or builds, had left to record was not kept",
	})
	if err == nil {
		o.mu.Lock()
		o.dropped -= dropped
		o.mu.Unlock()
	}
	return err
}
