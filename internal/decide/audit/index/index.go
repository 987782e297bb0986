// Package index answers questions over the audit log from an SQLite file that is
// fed from it. It is only an index: it is made of the log's records and of
// nothing else, and what is shown is read from the log again by the numbers that
// the index gives. Deleting it loses nothing.
//
// The index takes records from the log when it is fed. It fits a log if the last record that it
// took is that log's. It has caught up when it has every record that was in the log at a given
// moment; a View is the index as of one such moment.
//
// An index that is missing, damaged, of another version, or does not fit its log
// is made anew from the log's beginning, as is one that took what was erased
// since. Nothing here holds an append up.
package index

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Log is the log as the index needs it; audit.FileLog is one.
type Log interface {
	Records(ctx context.Context, f audit.Filter) iter.Seq2[audit.Record, error]
	// End returns the next record's number, and a channel that is closed once
	// there is another record.
	End() (next uint64, grown <-chan struct{})
}

// Options of New; the zero value is right for the daemon.
type Options struct {
	// Progress is told how far a feeding is, now and then; nil: nobody is.
	Progress func(done, end uint64)
}

// Index is the index over one log, in one file. It is safe for concurrent use by
// one process; two processes must not have the same file.
type Index struct {
	path    string
	log     Log
	options Options

	feeding chan struct{} // capacity 1: who has it feeds, opens or closes

	mu     sync.RWMutex // held for reading while the files are used, for writing while they are exchanged
	files  *files       // nil: not opened yet, or closed
	closed bool
}

// New makes the index of a log in a file whose directory it makes, too. Nothing
// is read or written before the first question, or Follow.
func New(path string, log Log, options Options) *Index {
	return &Index{path: path, log: log, options: options, feeding: make(chan struct{}, 1)}
}

// followPace is how long Follow lets records gather: a feeding costs about as
// much for one of them as for a hundred, and takes that from whoever installs at
// the time. A question has what is missing fed at once.
const followPace = 2 * time.Second

// Follow keeps the index caught up, but for the last seconds, until ctx ends.
// Failures go to failed, which may be nil, and are tried again with the next
// record.
func (x *Index) Follow(ctx context.Context, failed func(error)) {
	for {
		_, grown := x.log.End()
		err := x.CatchUp(ctx)
		if ctx.Err() != nil || x.isClosed() {
			return
		}
		if err != nil && failed != nil {
			failed(err)
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(followPace):
		case <-ctx.Done():
			return
		}
	}
}

// CatchUp feeds the index with every record that the log has now. A damaged one
// is made anew, once.
func (x *Index) CatchUp(ctx context.Context) error {
	end, _ := x.log.End()
	if err := x.beginFeed(ctx); err != nil {
		return err
	}
	defer x.endFeed()
	return x.catchUp(ctx, end)
}

// catchUp does what CatchUp does, for a caller that may feed.
func (x *Index) catchUp(ctx context.Context, end uint64) error {
	var err error
	for range 3 { // opened, fed and made anew at most twice
		if err = x.openFiles(ctx); err == nil {
			err = x.files.feedRecords(ctx, x.log, end, x.options.Progress)
		}
		if !mustBeMadeAnew(err) {
			break
		}
		if gone := x.discard(); gone != nil {
			return gone
		}
	}
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return err
	}
	if errors.Is(err, fault.ErrInvalid) { // the log's own damage
		return err
	}
	return fault.Wrap(fault.ErrUnavailable, err, "the index over the audit log can't be brought up to date")
}

// beginFeed waits for the right to feed, open or close.
func (x *Index) beginFeed(ctx context.Context) error {
	select {
	case x.feeding <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *Index) endFeed() { <-x.feeding }

// openFiles opens the files if they are not; the caller may feed.
func (x *Index) openFiles(ctx context.Context) error {
	if x.isClosed() {
		return fault.New(fault.ErrUnavailable, "the index over the audit log is closed")
	}
	if x.files != nil {
		return nil
	}
	f, err := openFiles(ctx, x.path, x.log)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.files = f
	return nil
}

// discard removes the files; the caller may feed.
func (x *Index) discard() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.files != nil {
		x.files.abandon()
		x.files = nil
	}
	return removeIndex(x.path)
}

func (x *Index) isClosed() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.closed
}

// Close ends the index; its file is as good as before at the next New.
func (x *Index) Close() error {
	if err := x.beginFeed(context.Background()); err != nil {
		return err
	}
	defer x.endFeed()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	f := x.files
	x.files = nil
	if f == nil {
		return nil
	}
	return f.closeTables()
}
