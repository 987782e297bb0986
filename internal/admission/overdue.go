package admission

import (
	"context"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/admission/records"
)

// maxOverdue is of how many sandboxes that have ended what could not be written is kept.
const maxOverdue = 1_024

// overdue are the books of sandboxes that have ended while the log took no records: how often
// refusals were repeated in them is written when it does again.
type overdue struct {
	writing sync.Mutex // held while they are written; taken before mu

	mu    sync.Mutex // guards books
	books []*records.Book
}

func (o *overdue) keep(b *records.Book) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.books = append(o.books, b)
	o.books = o.books[max(0, len(o.books)-maxOverdue):]
}

// write writes what it can, up to the first that can't be written: the others would not be
// either. One who comes while another writes does not wait.
func (o *overdue) write(ctx context.Context) {
	if !o.writing.TryLock() {
		return
	}
	defer o.writing.Unlock()
	o.mu.Lock()
	books := slices.Clone(o.books)
	o.mu.Unlock()
	for _, b := range books {
		if b.Summarise(ctx) != nil { // it is tried again, as its sandbox's end is
			return
		}
		o.mu.Lock()
		o.books = slices.DeleteFunc(o.books, func(one *records.Book) bool { return one == b })
		o.mu.Unlock()
	}
}
