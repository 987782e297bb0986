package audit

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// writer is the state of the goroutine that alone writes segments.
type writer struct {
	dir    string
	disk   logDisk
	file   writable  // nil until the next batch opens or begins one
	first  uint64    // of file
	began  time.Time // of the first record in file
	size   int64     // of file, as far as it is durable
	next   uint64    // number of the next record
	last   time.Time // of the last durable record
	known  time.Time // the earlier of that and of what the host's clock said then
	buffer []byte
	// owed are records of the log's own, not yet written; they go with the next batch.
	owed []*request
	// dirty: the file may hold bytes past size, or its length may not be
	// durable; it must be mended before the next write.
	dirty bool
	// broken: the file could not be mended; nothing is written until Open.
	broken error
	clock  clockWatch

	personal personalFile
	// gone are the commitments to shared entries that were erased: no more lines have them.
	gone map[string]bool
}

func (w *writer) close() error {
	err := w.personal.close()
	if w.file == nil {
		return err
	}
	if closing := w.file.Close(); closing != nil {
		return closing
	}
	return err
}

// oweRecord has a record of the log's own written with the next batch.
func (w *writer) oweRecord(r Record) error {
	q, err := newRequest(markAlarm(r), nil)
	if err == nil {
		w.owed = append(w.owed, q)
	}
	return err
}

// runWriter runs in the writer's goroutine: it takes what has come together while the last
// batch was on its way to the disk, and makes it durable at once.
func (l *FileLog) runWriter() {
	defer close(l.done)
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lost = true // after a panic nobody knows what it left behind: the next Open looks
	}()
	for range l.wake {
		for {
			batch, tasks, closing := l.takeBatch()
			for _, do := range tasks {
				do()
			}
			if len(batch) > 0 {
				l.commit(batch)
				continue
			}
			if closing {
				return
			}
			break
		}
	}
}

// takeBatch takes the tasks and the next requests, at most maxBatch bytes of them.
func (l *FileLog) takeBatch() (batch []*request, tasks []func(), closing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tasks, l.tasks = l.tasks, nil
	bytes, n := 0, 0
	for _, q := range l.pending {
		if n > 0 && bytes+len(q.rest)+64 > maxBatch {
			break
		}
		n++
		if q.state.CompareAndSwap(waiting, taken) {
			batch = append(batch, q)
			bytes += len(q.rest) + 64
		}
	}
	clear(l.pending[copy(l.pending, l.pending[n:]):])
	l.pending = l.pending[:len(l.pending)-n]
	return batch, tasks, l.closing
}

// errOwnerErased: whose run it is was erased while the record waited; it is encoded anew.
var errOwnerErased = errors.New("whose run it is was erased meanwhile")

// turnBack takes those out of a batch that commit to what is erased.
func (w *writer) turnBack(batch []*request) []*request {
	if len(w.gone) == 0 {
		return batch
	}
	return slices.DeleteFunc(batch, func(q *request) bool {
		if q.owner == nil || !w.gone[q.owner.of] {
			return false
		}
		q.result = errOwnerErased
		close(q.done)
		return true
	})
}

// commit writes a batch, and tells each of its callers.
func (l *FileLog) commit(batch []*request) {
	w := &l.writer
	if batch = w.turnBack(batch); len(batch) == 0 && w.owed == nil {
		return
	}
	now := l.options.Clock.Read()
	err := l.prepareSegment(now.Now)
	if err == nil {
		w.watchClock(now)
		err = w.writeBatch(w.withOwed(batch), now)
	}
	if err != nil {
		err = fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be written, so what it was to record is refused")
	} else {
		w.owed = nil
		l.mu.Lock()
		l.next = w.next
		l.bounds[len(l.bounds)-1].size = w.size
		l.tellGrown()
		l.mu.Unlock()
		l.follower.wakeFollower()
	}
	for _, q := range batch {
		q.result = err
		close(q.done)
	}
}

func (w *writer) withOwed(batch []*request) []*request {
	if w.owed == nil {
		return batch
	}
	return append(slices.Clip(w.owed), batch...)
}

// prepareSegment gives the writer a clean segment with room.
func (l *FileLog) prepareSegment(now time.Time) error {
	w := &l.writer
	if err := w.mendFile(); err != nil {
		return err
	}
	old := w.size > 0 && now.Sub(w.began) >= l.options.SegmentAge
	if w.file != nil && w.size < l.options.SegmentBytes && !old {
		return nil
	}
	file, err := w.disk.openFile(filepath.Join(l.dir, segmentName(w.next)))
	if err != nil {
		return err
	}
	// A segment that an earlier attempt began has nothing in it.
	if err := file.Truncate(0); err != nil {
		return joinClose(err, file)
	}
	if err := uninterrupted(func() error { return w.disk.syncDir(l.dir) }); err != nil {
		return joinClose(err, file)
	}
	if err := w.leaveSegment(); err != nil {
		return joinClose(err, file)
	}
	w.file, w.first, w.size = file, w.next, 0
	l.mu.Lock()
	l.bounds = append(l.bounds, segment{first: w.next})
	l.mu.Unlock()
	return nil
}

// leaveSegment ends with the segment that is written, if there is one.
func (w *writer) leaveSegment() error {
	if w.file == nil {
		return w.personal.close()
	}
	if err := w.cutPersonal(); err != nil {
		return err
	}
	err := errors.Join(w.file.Close(), w.personal.close())
	w.file = nil // also on an error: how far its personal data reach is not known any more
	return err
}

// writeBatch stamps the batch, writes it after the durable bytes and syncs it, the
// personal data first. On an error nothing of it stays.
func (w *writer) writeBatch(batch []*request, reading clock.Reading) error {
	at := w.stampTime(reading)
	now := at.time
	if years := []int{now.Year(), at.wall.Year()}; slices.Min(years) < 1 || slices.Max(years) > 9999 {
		return fmt.Errorf("the clock says year %d", slices.Max(years))
	}
	w.buffer = w.buffer[:0]
	for i, q := range batch {
		q.seq, q.at = w.next+uint64(i), at
		w.buffer = appendStamped(w.buffer, q.seq, q.at, q.rest)
	}
	added, err := w.writePersonal(batch)
	if err != nil {
		return err
	}
	err = writeAll(w.file, w.buffer, w.size)
	if err == nil {
		err = uninterrupted(w.file.Datasync)
	}
	if err != nil {
		w.dirty = true
		w.takeBack()
		return err
	}
	w.personal.keepBytes(added)
	if w.size == 0 {
		w.began = now
	}
	w.size += int64(len(w.buffer))
	w.next += uint64(len(batch))
	w.last, w.known = now, at.knownTime()
	return nil
}

// takeBack cuts the file back to its durable bytes. If even that fails, half a
// line may stand there, and the log refuses everything until it is opened anew.
func (w *writer) takeBack() {
	err := uninterrupted(func() error { return w.file.Truncate(w.size) })
	if err != nil {
		w.broken = fmt.Errorf("a failed write could not be taken back; restart the daemon when the disk is well: %w", err)
	}
}

// mendFile makes the file clean after a failed write: the cut is repeated and made
// durable, so that the next batch begins on known ground.
func (w *writer) mendFile() error {
	if w.broken != nil || !w.dirty {
		return w.broken
	}
	w.takeBack()
	if w.broken != nil {
		return w.broken
	}
	if err := uninterrupted(w.file.Datasync); err != nil {
		return err
	}
	w.dirty = false
	return nil
}

func joinClose(err error, f writable) error {
	if closing := f.Close(); closing != nil {
		return fmt.Errorf("%w (and closing: %w)", err, closing)
	}
	return err
}
