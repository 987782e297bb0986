package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// personalFile is the personal file of the segment that is being written. It
// belongs to the writer.
type personalFile struct {
	file writable // nil until it is needed
	size int64    // of what belongs to records that are in the log
	// dirty: the file may hold bytes past size; they are cut before the next write.
	dirty  bool
	buffer []byte
	shared map[string]bool // the commitments to entries that are in the file and shared
	fresh  []string        // those among the bytes that keep is not told of yet
}

// close ends with one segment's file; the next begins empty.
func (p *personalFile) close() error {
	file := p.file
	*p = personalFile{buffer: p.buffer}
	if file == nil {
		return nil
	}
	return file.Close()
}

// keepBytes says that the records are in the log to which the last bytes belong.
func (p *personalFile) keepBytes(added int) {
	if added > 0 {
		p.size, p.dirty = p.size+int64(added), false
	}
	for _, of := range p.fresh {
		p.shareEntry(of)
	}
	p.fresh = nil
}

func (p *personalFile) shareEntry(of string) {
	if p.shared == nil {
		p.shared = map[string]bool{}
	}
	p.shared[of] = true
}

// addEntry puts an entry's line into the buffer.
func (p *personalFile) addEntry(seq uint64, rest []byte) {
	p.buffer = append(p.buffer, `{"seq":`...)
	p.buffer = strconv.AppendUint(p.buffer, seq, 10)
	p.buffer = append(p.buffer, rest...)
}

// writePersonal makes the personal data of a stamped batch durable and returns
// their bytes. They count only when keep is told that the lines are durable too:
// till then the next write goes over them, and readers find no record for them.
func (w *writer) writePersonal(batch []*request) (added int, err error) {
	p := &w.personal
	p.buffer, p.fresh = p.buffer[:0], nil
	for _, q := range batch {
		if q.owner != nil && !p.shared[q.owner.of] && !slices.Contains(p.fresh, q.owner.of) {
			p.addEntry(q.seq, q.owner.rest)
			p.fresh = append(p.fresh, q.owner.of)
		}
		if q.personal != nil {
			p.addEntry(q.seq, q.personal)
		}
	}
	if len(p.buffer) == 0 {
		return 0, nil
	}
	if err := w.openPersonal(); err != nil {
		return 0, err
	}
	if p.dirty {
		if err := uninterrupted(func() error { return p.file.Truncate(p.size) }); err != nil {
			return 0, err
		}
	}
	p.dirty = true
	if err := writeAll(p.file, p.buffer, p.size); err != nil {
		return 0, err
	}
	return len(p.buffer), uninterrupted(p.file.Datasync)
}

// cutPersonal takes off what a crash, or a failed write, left behind the entries of a segment that
// ends: the numbers there become those of the next segment's records, and no erasure would look
// for them here.
func (w *writer) cutPersonal() error {
	p := &w.personal
	info, err := os.Stat(filepath.Join(w.dir, personalName(w.first)))
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() <= p.size {
		return nil
	}
	if err == nil {
		err = w.openPersonal()
	}
	if err == nil {
		err = uninterrupted(func() error { return p.file.Truncate(p.size) })
	}
	if err == nil {
		err = uninterrupted(p.file.Datasync)
	}
	return err
}

func (w *writer) openPersonal() error {
	if w.personal.file != nil {
		return nil
	}
	file, err := w.disk.openFile(filepath.Join(w.dir, personalName(w.first)))
	if err != nil {
		return err
	}
	if err := uninterrupted(func() error { return w.disk.syncDir(w.dir) }); err != nil {
		return joinClose(err, file)
	}
	w.personal.file, w.personal.dirty = file, true
	return nil
}

// recoverPersonal finds the end of the entries in the last segment's personal
// file that belong to records; what follows was never acknowledged, and is
// cut off before the next write.
func (w *writer) recoverPersonal() error {
	f, err := os.Open(filepath.Join(w.dir, personalName(w.first)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the personal data of the audit log can't be read")
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, maxPersonalLine)
	at := int64(0)
	for {
		text, err := lines.ReadSlice('\n')
		at += int64(len(text))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fault.Wrap(fault.ErrUnavailable, err, "the personal data of the audit log can't be read")
		}
		var e personalEntry
		if err == nil && json.Unmarshal(text, &e) == nil && e.Seq < w.next {
			w.personal.size = at
		}
	}
}
