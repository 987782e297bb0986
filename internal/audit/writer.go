package audit

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// writer is the state of the goroutine that alone writes segments.
type writer struct {
	file   segmentFile // nil until the next batch opens or begins one
	first  uint64      // of file
	size   int64       // of file, as far as it is durable
	next   uint64      // number of the next record
	last   time.Time   // of the last durable record
	buffer []byte
	// owed is the record of a repair, not yet written; it goes with the next batch.
	owed []byte
	// dirty: the file may hold bytes past size, or its length may not be
	// durable; it must be mended before the next write.
	dirty bool
	// broken: the file could not be mended; nothing is written until Open.
	broken error
}

func (w *writer) close() error {
	if w.file == nil {
		return nil
	}
	return w.file.Close()
}

// run is the writer's goroutine: it takes what has come together while the last
// batch was on its way to the disk, and makes it durable at once.
func (l *FileLog) run() {
	defer close(l.done)
	for range l.wake {
		for {
			batch, closing := l.take()
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

// take takes the next requests, at most maxBatch bytes of them.
func (l *FileLog) take() (batch []*request, closing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
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
	return batch, l.closing
}

// commit writes a batch, and tells each of its callers.
func (l *FileLog) commit(batch []*request) {
	w := &l.writer
	err := l.prepare()
	if err == nil {
		err = w.write(w.withOwed(batch), l.options.Clock())
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
	return append([]*request{{rest: w.owed}}, batch...)
}

// prepare gives the writer a clean segment with room.
func (l *FileLog) prepare() error {
	w := &l.writer
	if err := w.mend(); err != nil {
		return err
	}
	if w.file != nil && w.size < l.options.SegmentBytes {
		return nil
	}
	file, err := l.options.disk.openSegment(filepath.Join(l.dir, segmentName(w.next)))
	if err != nil {
		return err
	}
	// A segment that an earlier attempt began has nothing in it.
	if err := file.Truncate(0); err != nil {
		return joinClose(err, file)
	}
	if err := uninterrupted(func() error { return l.options.disk.syncDir(l.dir) }); err != nil {
		return joinClose(err, file)
	}
	if w.file != nil {
		if err := w.file.Close(); err != nil {
			w.file = nil
			return joinClose(err, file)
		}
	}
	w.file, w.first, w.size = file, w.next, 0
	l.mu.Lock()
	l.bounds = append(l.bounds, segment{first: w.next})
	l.mu.Unlock()
	return nil
}

// write stamps the batch, writes it after the durable bytes and syncs it. On
// an error nothing of it stays.
func (w *writer) write(batch []*request, now time.Time) error {
	now = now.UTC().Round(0)
	if now.Before(w.last) {
		now = w.last
	}
	if y := now.Year(); y < 1 || y > 9999 {
		return fmt.Errorf("the clock says year %d", y)
	}
	w.buffer = w.buffer[:0]
	for i, q := range batch {
		q.seq, q.at = w.next+uint64(i), now
		w.buffer = stamp(w.buffer, q.seq, q.at, q.rest)
	}
	err := writeAll(w.file, w.buffer, w.size)
	if err == nil {
		err = uninterrupted(w.file.Datasync)
	}
	if err != nil {
		w.dirty = true
		w.takeBack()
		return err
	}
	w.size += int64(len(w.buffer))
	w.next += uint64(len(batch))
	w.last = now
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

// mend makes the file clean after a failed write: the cut is repeated and made
// durable, so that the next batch begins on known ground.
func (w *writer) mend() error {
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

func joinClose(err error, f segmentFile) error {
	if closing := f.Close(); closing != nil {
		return fmt.Errorf("%w (and closing: %w)", err, closing)
	}
	return err
}

func segmentName(first uint64) string { return fmt.Sprintf("%012d.jsonl", first) }
