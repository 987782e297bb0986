package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// torn is what a crash left after the last whole record.
type torn struct {
	segment, side string // file names in the log's directory
	bytes         int64
}

func (t *torn) tornRecord() Record {
	return Record{
		Kind: KindDaemon, Outcome: Failed,
		Reason: "A crash tore the end of the audit log; the torn bytes were never acknowledged and are kept in a side file.",
		Detail: map[string]string{
			"event": "torn_tail", "segment": t.segment, "side_file": t.side, "bytes": strconv.FormatInt(t.bytes, 10),
		},
	}
}

// repair finds the segments, checks that they follow each other, and cuts a
// torn end off the last one. It returns what it cut, nil if nothing.
func (l *FileLog) repair() (*torn, error) {
	if err := l.tidyFiles(); err != nil {
		return nil, err
	}
	segments, err := listSegments(l.dir)
	if err != nil {
		return nil, err
	}
	l.bounds = segments
	for i, s := range segments[:max(0, len(segments)-1)] {
		if s.form != plain {
			continue
		}
		if l.bounds[i].size, err = l.checkClosed(s.first, segments[i+1].first); err != nil {
			return nil, err
		}
	}
	if len(segments) == 0 {
		return nil, nil
	}
	last := segments[len(segments)-1]
	if last.form != plain {
		// The next record begins a segment; its time has nothing to compare with.
		l.writer.next = last.first + uint64(last.count)
		l.next = l.writer.next
		return nil, nil
	}
	return l.recoverLast(last.first)
}

// tidyFiles removes the files that a crash kept from being renamed into place.
func (l *FileLog) tidyFiles() error {
	left, err := filepath.Glob(filepath.Join(l.dir, "*.tmp"))
	for _, path := range left {
		err = errors.Join(err, l.options.disk.removeFile(path))
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be tidied up")
	}
	return nil
}

// checkClosed checks that a segment that is no longer written ends with the
// record before the next segment's first, and returns its size.
func (l *FileLog) checkClosed(first, next uint64) (int64, error) {
	path := filepath.Join(l.dir, segmentName(first))
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return 0, fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read")
	}
	tail := make([]byte, min(info.Size(), MaxRecord+1))
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return 0, fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read")
	}
	line, whole := bytes.CutSuffix(tail, []byte("\n"))
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	if seq, ok := seqOf(line); !whole || !ok || seq+1 != next {
		return 0, fault.Invalid("the audit log is damaged: %s does not end with record %d; put it back from a copy", path, int64(next)-1)
	}
	return info.Size(), nil
}

// recoverLast reads the last segment to its last whole record, cuts off what
// follows, and opens it for writing.
func (l *FileLog) recoverLast(first uint64) (*torn, error) {
	path := filepath.Join(l.dir, segmentName(first))
	whole, size, err := l.wholeRecords(path, first)
	if err != nil {
		return nil, err
	}
	var cut *torn
	if size > whole {
		if cut, err = l.moveTail(path, whole, size); err != nil {
			return nil, err
		}
	}
	file, err := l.options.disk.openFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be opened for writing")
	}
	w := &l.writer
	w.file, w.first, w.size = file, first, whole
	// A cut, or lines whose sync a crash prevented, become durable before
	// anything is built on them.
	w.dirty = true
	if err := w.mendFile(); err != nil {
		return nil, joinClose(fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be repaired"), file)
	}
	l.bounds[len(l.bounds)-1].size = whole
	l.next = w.next
	return cut, w.recoverPersonal()
}

// wholeRecords returns the length of the prefix of the segment that is whole
// records in order, and the file's size; it sets the writer's next and last.
func (l *FileLog) wholeRecords(path string, first uint64) (whole, size int64, err error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return 0, 0, fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, 0, fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read")
	}
	l.writer.next = first
	lines := bufio.NewReaderSize(f, MaxRecord)
	for {
		text, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return 0, 0, fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read")
		}
		if err != nil {
			break
		}
		r, bad := decodeLine(text, l.writer.next)
		if bad != nil {
			break
		}
		if whole == 0 {
			l.writer.began = r.Time
		}
		whole += int64(len(text))
		l.writer.next, l.writer.last = r.Seq+1, r.Time
		l.writer.known = stampTime{r.Time, r.Clock}.knownTime()
		l.watchErasure(r.Record)
	}
	// A crash can only have torn the batch that was on its way.
	if lost := info.Size() - whole; lost > maxBatch+MaxRecord {
		return 0, 0, fault.Invalid("the audit log is damaged: %s has %d bytes after record %d that are no records, more than a crash can tear; put it back from a copy",
			path, lost, int64(l.writer.next)-1)
	}
	return whole, info.Size(), nil
}

// moveTail copies the bytes after the last whole record to a side file, durably.
func (l *FileLog) moveTail(path string, whole, size int64) (*torn, error) {
	t := &torn{segment: filepath.Base(path), bytes: size - whole}
	src, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read")
	}
	defer src.Close()
	dst, err := l.createSide(t)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the torn end of the audit log can't be kept in a side file")
	}
	_, err = io.Copy(&sequential{file: dst}, io.NewSectionReader(src, whole, size-whole))
	if err == nil {
		err = uninterrupted(dst.Datasync)
	}
	err = errors.Join(err, dst.Close())
	if err == nil {
		err = uninterrupted(func() error { return l.options.disk.syncDir(l.dir) })
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the torn end of the audit log can't be kept in a side file")
	}
	return t, nil
}

func (l *FileLog) createSide(t *torn) (writable, error) {
	for i := range 1000 {
		t.side = fmt.Sprintf("%012d.%d.torn", l.writer.next, i)
		path := filepath.Join(l.dir, t.side)
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) { // nobody else writes here
			return l.options.disk.openFile(path)
		}
	}
	return nil, os.ErrExist
}
