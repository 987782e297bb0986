package audit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/filelock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Options of Open; the zero value is right for the daemon.
type Options struct {
	// SegmentBytes is the size past which a new segment is begun; 0 is 64 MiB.
	SegmentBytes int64
	// SegmentAge is the age of a segment's first record past which a new segment is
	// begun, so that old records can be sealed; 0 is seven days.
	SegmentAge time.Duration
	// Clock gives the time of records; nil is the host's, which is believed.
	Clock clock.Source
	// KeyFile is the private key that signs checkpoints; "" is "key" in the log's
	// directory. It is made if there is none and the log has no checkpoint yet.
	KeyFile string
	// CheckpointEvery is the least time between two checkpoints; 0 is a second.
	CheckpointEvery time.Duration

	disk logDisk // nil is the real one
}

const (
	defaultSegmentBytes    = 64 << 20
	defaultSegmentAge      = 7 * 24 * time.Hour
	defaultCheckpointEvery = time.Second
)

// maxBatch bounds the bytes that one fdatasync makes durable, and so what a
// crash can tear: Open cuts off at most one batch.
const maxBatch = 1 << 20

// FileLog is the log in one directory; the package comment lists its files.
//
// Guarantees:
//   - When Append returns nil the record's line, and the personal data that belong
//     to it, are on the disk and the log has them after any crash; when it
//     returns an error no reader of this log sees the record.
//   - Appends that come at the same time share one fdatasync, and one more if any of
//     them has personal data.
//   - Record numbers are contiguous, and their times never go back with them. Where the
//     host's clock says otherwise, a record has what that says beside it, and when it
//     jumps or goes back, a record of its own says so.
//   - One appender: a second Open of the directory is refused.
//   - A checkpoint covers every record soon (CheckpointEvery) after it, and all of them
//     after Close. Nothing waits for it.
//
// Not guaranteed: when the disk refuses both to sync a record and to take it
// back, or power fails between the two, the record can be in the log after the
// next Open though Append failed. The things that it records then did not happen.
type FileLog struct {
	dir     string
	options Options
	proof   *proof // of a Reader that was verified; else nil
	lock    *filelock.Lock

	wake chan struct{} // capacity 1: pending or tasks is not empty, or closing
	done chan struct{} // closed when the writer has ended

	mu      sync.Mutex // guards the seven below
	pending []*request
	tasks   []func() // for the writer, between two batches
	closing bool
	lost    bool          // the writer has ended before its time
	bounds  []segment     // all segments; the last one is being written
	next    uint64        // number of the next record; all before are durable
	grown   chan struct{} // see End; nil: nobody waits

	owners ownerEntries  // that new records commit to
	shared sharedEntries // that were read

	writer writer // owned by the writer's goroutine
	marks  marks  // for readers; has its own lock

	follower follower

	erasing []begunErasure // that a crash interrupted; for Open
}

// request is one Append. state says whose it is: the caller may abandon it only
// until the writer has taken it.
type request struct {
	rest []byte
	// personal is the entry's line after its number; nil if nothing is personal.
	personal []byte
	owner    *ownerEntry // nil: it is nobody's, or of no run

	state  atomic.Int32
	done   chan struct{}
	seq    uint64
	at     stampTime
	result error
}

const (
	waiting int32 = iota
	taken
	abandoned
)

// Open opens the log in dir, making it if need be, and repairs what a crash left
// behind: a torn last line is moved to a side file, and a record says so; a tree
// that is behind is caught up. fault.ErrInvalid if the log is damaged,
// ErrForbidden if its key is not kept well.
func Open(dir string, options Options) (*FileLog, error) {
	options = options.withDefaults(dir)
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
		writer:   writer{dir: dir, disk: options.disk},
		follower: newFollower(),
	}
	if err := l.recover(); err != nil {
		return nil, errors.Join(err, l.writer.close(), l.follower.close(), lock.Release())
	}
	if l.writer.owed != nil {
		l.commit(nil) // on a full disk it stays owed, and goes with the next batch
	}
	safego.Go(l.runWriter)
	safego.Go(l.runFollower)
	l.finishErasures()
	return l, nil
}

func (o Options) withDefaults(dir string) Options {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	if o.SegmentAge == 0 {
		o.SegmentAge = defaultSegmentAge
	}
	if o.Clock == nil {
		o.Clock = clock.Plain(time.Now)
	}
	if o.CheckpointEvery == 0 {
		o.CheckpointEvery = defaultCheckpointEvery
	}
	if o.KeyFile == "" {
		o.KeyFile = filepath.Join(dir, keyName)
	}
	if o.disk == nil {
		o.disk = osDisk{}
	}
	return o
}

// recover makes the journal whole, then the tree.
func (l *FileLog) recover() error {
	cut, err := l.repair()
	if err != nil {
		return err
	}
	if cut != nil {
		if err := l.writer.oweRecord(cut.tornRecord()); err != nil {
			return err
		}
	}
	return l.openTree()
}

func lockDir(dir string) (*filelock.Lock, error) {
	path := filepath.Join(dir, "lock")
	lock, err := filelock.Take(path)
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, fault.Wrap(fault.ErrConflict, err, "the audit log in %s has an appender already; one daemon at a time may write it", dir)
	case err != nil:
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the audit log's lock %s can't be taken", path)
	}
	return lock, nil
}

// Append implements Log. A cancelled context takes the record back only while
// the writer has not begun with it; after that Append waits for the disk.
func (l *FileLog) Append(ctx context.Context, r Record) (Record, error) {
	if err := ctx.Err(); err != nil {
		return r, fault.Wrap(fault.ErrUnavailable, err, "the record was not written")
	}
	r = markAlarm(r)
	for {
		made, err := l.append(ctx, r)
		if !errors.Is(err, errOwnerErased) {
			return made, err
		}
	}
}

func (l *FileLog) append(ctx context.Context, r Record) (Record, error) {
	q, err := newRequest(r, &l.owners)
	if err != nil {
		return r, err
	}
	faultpoint.Hit(faultpoint.RecordAsked)
	if err := l.enqueue(q); err != nil {
		return r, err
	}
	select {
	case <-q.done:
		if q.result == nil {
			faultpoint.Hit(faultpoint.RecordWritten)
		}
	case <-l.done:
	case <-ctx.Done():
		if q.state.CompareAndSwap(waiting, abandoned) {
			return r, fault.Wrap(fault.ErrUnavailable, ctx.Err(), "the record was not written")
		}
		select {
		case <-q.done:
		case <-l.done:
		}
	}
	return l.outcome(r, q)
}

// outcome is of a request that is done, or that the writer left behind.
func (l *FileLog) outcome(r Record, q *request) (Record, error) {
	select {
	case <-q.done:
		r.Seq, r.Time, r.Clock = q.seq, q.at.time, q.at.wall
		return r, q.result
	default:
		return r, l.endedError()
	}
}

// endedError is what is said of a log whose writer has ended.
func (l *FileLog) endedError() error {
	return fault.New(fault.ErrUnavailable, "the audit log is closed; the daemon's log says why, and another daemon opens it again")
}

func newRequest(r Record, owners *ownerEntries) (*request, error) {
	l, entry, owner, err := takeOut(r, owners)
	if err != nil {
		return nil, err
	}
	q := &request{done: make(chan struct{}), owner: owner}
	if q.rest, err = encodeBody(l); err != nil {
		return nil, err
	}
	if entry == nil {
		return q, nil
	}
	if q.personal, err = entry.encodeRest(); err != nil {
		return nil, err
	}
	if len(q.rest)+len(q.personal) > MaxRecord {
		return nil, fault.Invalid("the record is %d bytes long; the log takes at most %d", len(q.rest)+len(q.personal), MaxRecord)
	}
	return q, nil
}

func (l *FileLog) enqueue(q *request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing || l.lost {
		return l.endedError()
	}
	l.pending = append(l.pending, q)
	l.wakeWriter()
	return nil
}

// wakeWriter wakes the writer; the caller holds l.mu.
func (l *FileLog) wakeWriter() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// between has the writer do something between two batches, and returns when it
// is done.
func (l *FileLog) between(do func() error) error {
	result := make(chan error, 1)
	l.mu.Lock()
	if l.closing || l.lost {
		l.mu.Unlock()
		return l.endedError()
	}
	l.tasks = append(l.tasks, func() { result <- do() })
	l.wakeWriter()
	l.mu.Unlock()
	select {
	case err := <-result:
		return err
	case <-l.done:
		return l.endedError()
	}
}

// Close writes what is pending, covers it with a checkpoint, ends the writer and
// gives the directory free. An error may be of the checkpoint alone: all
// acknowledged records are durable, and the next Open makes up for it.
func (l *FileLog) Close() error {
	l.mu.Lock()
	already := l.closing
	l.closing = true
	l.wakeWriter()
	l.mu.Unlock()
	<-l.done
	if already {
		<-l.follower.done
		return nil
	}
	last := l.stopFollowing()
	return errors.Join(last, l.writer.close(), l.follower.close(), l.lock.Release())
}
