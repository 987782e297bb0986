package audit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Options of Open; the zero value is right for the daemon.
type Options struct {
	// SegmentBytes is the size past which a new segment is begun; 0 is 64 MiB.
	SegmentBytes int64
	// Clock gives the time of records; nil is time.Now.
	Clock func() time.Time

	disk disk // nil is the real one
}

const defaultSegmentBytes = 64 << 20

// maxBatch bounds the bytes that one fdatasync makes durable, and so what a
// crash can tear: Open cuts off at most one batch.
const maxBatch = 1 << 20

// FileLog is the log in one directory: segments of JSON lines, each named after
// its first record's number ("000000000000.jsonl"), a lock file, and what
// crashes tore off (".torn").
//
// Guarantees:
//   - When Append returns nil the record's line is on the disk and the log has
//     it after any crash; when it returns an error no reader of this log sees it.
//   - Appends that come at the same time share one fdatasync.
//   - Record numbers are contiguous, and times never go back with them.
//   - One appender: a second Open of the directory is refused.
//
// Not guaranteed: when the disk refuses both to sync a record and to take it
// back, or power fails between the two, the record can be in the log after the
// next Open though Append failed. What it records then did not happen.
//
// A line's bytes are final and canonical (see body), so that a Merkle tree can
// take them as its leaves.
type FileLog struct {
	dir     string
	options Options
	lock    *os.File

	wake chan struct{} // capacity 1: pending is not empty, or closing
	done chan struct{} // closed when the writer has ended

	mu      sync.Mutex // guards the five below
	pending []*request
	closing bool
	bounds  []segment     // all segments; the last one is being written
	next    uint64        // number of the next record; all before are durable
	grown   chan struct{} // see End; nil: nobody waits

	writer writer // owned by the writer's goroutine
	marks  marks  // for readers; has its own lock
}

// segment is a file of the log: its first record's number and, as far as it is
// durable, its length.
type segment struct {
	first uint64
	size  int64
}

// request is one Append. state says whose it is: the caller may abandon it only
// until the writer has taken it.
type request struct {
	rest   []byte
	state  atomic.Int32
	done   chan struct{}
	seq    uint64
	at     time.Time
	result error
}

const (
	waiting int32 = iota
	taken
	abandoned
)

// Open opens the log in dir, making it if need be, and repairs what a crash left
// behind: a torn last line is moved to a side file, and a record says so.
func Open(dir string, options Options) (*FileLog, error) {
	if options.SegmentBytes == 0 {
		options.SegmentBytes = defaultSegmentBytes
	}
	if options.Clock == nil {
		options.Clock = time.Now
	}
	if options.disk == nil {
		options.disk = osDisk{}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the audit log's directory %s can't be made", dir)
	}
	if err := os.Chmod(dir, 0o700); err != nil { // #nosec G302 -- a directory
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the audit log's directory %s can't be closed to others", dir)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	l := &FileLog{
		dir: dir, options: options, lock: lock,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	cut, err := l.repair()
	if err == nil && cut != nil {
		l.writer.owed, err = body(cut.record())
	}
	if err != nil {
		return nil, errors.Join(err, l.writer.close(), lock.Close())
	}
	if l.writer.owed != nil {
		l.commit(nil) // on a full disk it stays owed, and goes with the next batch
	}
	go l.run()
	return l, nil
}

func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600) // #nosec G304 -- in the log's own directory
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the audit log's lock %s can't be opened", path)
	}
	err = uninterrupted(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if err == nil {
		return f, nil
	}
	category, sentence := fault.ErrUnavailable, "the audit log in %s can't be locked"
	if errors.Is(err, unix.EWOULDBLOCK) {
		category, sentence = fault.ErrConflict, "the audit log in %s has an appender already; one daemon at a time may write it"
	}
	return nil, errors.Join(fault.Wrap(category, err, sentence, dir), f.Close())
}

// Append implements Log. A cancelled context takes the record back only while
// the writer has not begun with it; after that Append waits for the disk.
func (l *FileLog) Append(ctx context.Context, r Record) (Record, error) {
	if err := ctx.Err(); err != nil {
		return r, fault.Wrap(fault.ErrUnavailable, err, "the record was not written")
	}
	rest, err := body(r)
	if err != nil {
		return r, err
	}
	q := &request{rest: rest, done: make(chan struct{})}
	if err := l.enqueue(q); err != nil {
		return r, err
	}
	select {
	case <-q.done:
	case <-ctx.Done():
		if q.state.CompareAndSwap(waiting, abandoned) {
			return r, fault.Wrap(fault.ErrUnavailable, ctx.Err(), "the record was not written")
		}
		<-q.done
	}
	r.Seq, r.Time = q.seq, q.at
	return r, q.result
}

func (l *FileLog) enqueue(q *request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return fault.New(fault.ErrUnavailable, "the audit log is closed")
	}
	l.pending = append(l.pending, q)
	l.signal()
	return nil
}

// signal wakes the writer; the caller holds l.mu.
func (l *FileLog) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Close writes what is pending, ends the writer and gives the directory free.
func (l *FileLog) Close() error {
	l.mu.Lock()
	already := l.closing
	l.closing = true
	l.signal()
	l.mu.Unlock()
	<-l.done
	if already {
		return nil
	}
	return errors.Join(l.writer.close(), l.lock.Close())
}
