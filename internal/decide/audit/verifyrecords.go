package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// readSegments goes through all records in order.
func (v *verifier) readSegments(ctx context.Context) error {
	for _, s := range v.segments {
		v.all += s.fileBytes(v.dir)
	}
	if v.proven > 0 {
		flat, _, err := openFlat(filepath.Join(v.dir, treeName))
		if err != nil || flat == nil {
			return fault.Wrap(fault.ErrUnavailable, err, "the log's tree can't be read")
		}
		defer flat.Close()
		v.leaves = &leafReader{file: flat, stored: bufio.NewReaderSize(flat, 1<<20)}
	}
	v.compareRoots() // of size 0
	for i, s := range v.segments {
		if v.tree.size != int64(s.first) {
			v.reportBad(uint64(v.tree.size), s.fileName(), 0, "record %d is missing: the next segment begins with record %d", v.tree.size, s.first)
			break
		}
		var err error
		if s.form == elsewhere {
			err = v.readLeaves(s)
		} else {
			err = v.readLines(ctx, s, i == len(v.segments)-1)
		}
		if err != nil {
			return err
		}
		if v.stopped {
			break
		}
	}
	v.verdict.Records = uint64(v.tree.size)
	if !v.stopped && v.met < len(v.marks) {
		v.reportEarlyEnd(v.marks[len(v.marks)-1])
	}
	return nil
}

// reportEarlyEnd reports records that a checkpoint covers, and that are not there.
func (v *verifier) reportEarlyEnd(m mark) {
	whose := "a checkpoint of the log"
	if m.kept {
		whose = "a checkpoint that you kept"
	}
	file := ""
	if n := len(v.segments); n > 0 {
		file = v.segments[n-1].fileName()
	}
	v.reportBad(uint64(v.tree.size), file, v.end(), "record %d is missing: %s covers %d records, and there are %d", v.tree.size, whose, m.Size, v.tree.size)
}

// end is the size of the last segment's file.
func (v *verifier) end() int64 {
	if len(v.segments) == 0 {
		return 0
	}
	return v.segments[len(v.segments)-1].fileBytes(v.dir)
}

// fileBytes is the size of the file that has the segment's lines.
func (s segment) fileBytes(dir string) int64 {
	info, err := os.Stat(filepath.Join(dir, s.fileName()))
	if err != nil {
		return 0
	}
	return info.Size()
}

// readLeaves takes the hashes of records that are elsewhere.
func (v *verifier) readLeaves(s segment) error {
	file, err := os.Open(filepath.Join(v.dir, leavesName(s.first)))
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the hashes of a sealed segment can't be read")
	}
	defer file.Close()
	stored := bufio.NewReader(file)
	for n := range s.count {
		var leaf tlog.Hash
		if _, err := io.ReadFull(stored, leaf[:]); err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "the hashes of a sealed segment can't be read")
		}
		v.checkLeaf(s, leaf, n*tlog.HashSize)
		if v.stopped {
			return nil
		}
	}
	v.verdict.Elsewhere += uint64(s.count)
	v.away = s.first + uint64(s.count)
	return nil
}

// openSegment opens a segment as it is now: a daemon may have sealed it meanwhile.
func (v *verifier) openSegment(s segment) (segment, *lineFile, error) {
	file, err := openLines(v.dir, s)
	if errors.Is(err, os.ErrNotExist) && s.form == plain {
		if now, lerr := listSegments(v.dir); lerr == nil {
			i := slices.IndexFunc(now, func(other segment) bool { return other.first == s.first })
			if i >= 0 && now[i].form == sealed {
				s = now[i]
				file, err = openLines(v.dir, s)
			}
		}
	}
	return s, file, err
}

// readLines reads a segment's records and compares each.
func (v *verifier) readLines(ctx context.Context, s segment, last bool) error {
	s, file, err := v.openSegment(s)
	if err != nil {
		if s.form == sealed && !errors.Is(err, os.ErrPermission) {
			v.reportBad(s.first, s.fileName(), 0, "the sealed segment can't be read: %s", err)
			return nil
		}
		return fault.Wrap(fault.ErrUnavailable, err, "the segment %s can't be read", s.fileName())
	}
	defer file.close()
	var leaves []byte
	if s.form == sealed {
		if leaves, err = os.ReadFile(filepath.Join(v.dir, leavesName(s.first))); err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "the hashes of a sealed segment can't be read")
		}
	}
	personal := &personalReader{path: filepath.Join(v.dir, personalName(s.first))}
	v.shared = map[string]*sharedFact{}
	before, at := v.read, int64(0)
	lines := bufio.NewReaderSize(file, MaxRecord)
	for n := 0; ; n++ {
		if n%4096 == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			v.tellProgress(before, file)
		}
		if s.form == sealed && v.tree.size == int64(s.first)+s.count {
			return v.endOfSealed(s, lines, before)
		}
		text, err := lines.ReadSlice('\n')
		if err != nil {
			return v.endOfLines(s, last, at, text, err, before)
		}
		if err := v.checkLine(s, text, at, personal); err != nil || v.stopped {
			return err
		}
		leaves = v.compareLeaf(s, leaves, text)
		at += int64(len(text))
	}
}

// compareLeaf compares the next of a sealed segment's hashes with its record, and
// returns those that are left to compare; none after a wrong one.
func (v *verifier) compareLeaf(s segment, leaves, text []byte) (left []byte) {
	if len(leaves) < tlog.HashSize {
		return nil
	}
	if leaf := leafOf(text); bytes.Equal(leaf[:], leaves[:tlog.HashSize]) {
		return leaves[tlog.HashSize:]
	}
	seq := uint64(v.tree.size) - 1
	v.problem(&seq, leavesName(s.first), int64(seq-s.first)*tlog.HashSize, "the hash that is kept of the sealed record %d is not the record's; the record itself is sound", seq)
	return nil
}

// tellProgress tells how far the reading is: by the compressed bytes where they are.
func (v *verifier) tellProgress(before int64, file *lineFile) {
	at, err := file.file.Seek(0, io.SeekCurrent)
	if _, plain := file.Reader.(*io.SectionReader); plain {
		at, err = file.Reader.(io.Seeker).Seek(0, io.SeekCurrent)
	}
	if err == nil {
		v.read = before + at
	}
	if v.options.Progress != nil {
		v.options.Progress(v.read, v.all)
	}
}

// endOfSealed checks, after all records that the leaves promise, that there are no more.
func (v *verifier) endOfSealed(s segment, lines *bufio.Reader, before int64) error {
	if _, err := lines.ReadByte(); !errors.Is(err, io.EOF) {
		v.reportBad(uint64(v.tree.size), s.fileName(), 0, "the sealed segment has more in it than its %d records, or is damaged behind them", s.count)
		return nil
	}
	v.verdict.Sealed += uint64(s.count)
	v.read = before + s.fileBytes(v.dir)
	return nil
}

// endOfLines decides what the end of a file means: of the last segment it may be
// torn, where no checkpoint covers it.
func (v *verifier) endOfLines(s segment, last bool, at int64, rest []byte, err error, before int64) error {
	next := uint64(v.tree.size)
	switch {
	case s.form == sealed:
		v.reportBad(next, s.fileName(), at, "record %d can't be read: the sealed segment ends or is damaged there (%s)", next, err)
	case errors.Is(err, bufio.ErrBufferFull):
		v.reportBad(next, s.fileName(), at, "record %d is longer than a record can be", next)
	case !errors.Is(err, io.EOF):
		return fault.Wrap(fault.ErrUnavailable, err, "the segment %s can't be read", s.fileName())
	case len(rest) > 0 && (!last || v.met < len(v.marks)):
		v.reportBad(next, s.fileName(), at, "record %d is cut short: its line has no end", next)
	case len(rest) > 0:
		v.verdict.Notes = append(v.verdict.Notes, fmt.Sprintf("the last %d bytes of %s are no whole record: a crash, or a daemon that is writing one; they were never acknowledged", len(rest), s.fileName()))
	}
	v.read = before + s.fileBytes(v.dir)
	return nil
}

// checkLine compares one line.
func (v *verifier) checkLine(s segment, text []byte, at int64, personal *personalReader) error {
	next := uint64(v.tree.size)
	seq, ok := seqOf(text)
	switch {
	case !ok:
		v.reportBad(next, s.fileName(), at, "record %d is no record: its line does not begin as one", next)
		return nil
	case seq != next:
		v.reportBad(next, s.fileName(), at, "record %d is not where it belongs: there is record %d", next, seq)
		return nil
	}
	if v.checkLeaf(s, leafOf(text), at); v.stopped {
		return nil
	}
	if int64(next) >= v.lastSize() { // nothing but itself vouches for it
		if _, err := decodeLine(text, next); err != nil {
			v.reportBad(next, s.fileName(), at, "record %d can't be read: %s", next, err)
			return nil
		}
	}
	own, owner := commitmentsOf(text)
	if err := v.compareOwner(next, owner, text, personal); err != nil {
		return err
	}
	if err := v.comparePersonal(next, own, text, personal); err != nil {
		return err
	}
	if bytes.Contains(text, []byte(`"kind":"log"`)) {
		v.noteErasure(text, next)
	}
	return nil
}

func (v *verifier) lastSize() int64 {
	if len(v.marks) == 0 {
		return 0
	}
	return v.marks[len(v.marks)-1].Size
}

// checkLeaf adds a leaf, compares it with the tree's file as far as that is proven,
// and the root with the checkpoints of this size.
func (v *verifier) checkLeaf(s segment, leaf tlog.Hash, at int64) {
	n := v.tree.size
	if n < v.proven {
		want, err := v.leaves.readLeaf()
		if err != nil || want != leaf {
			v.reportBad(uint64(n), s.fileName(), at, "record %d was changed: it is not what the log checkpoint covers", n)
			return
		}
	}
	v.scratch = v.tree.addLeaf(v.scratch[:0], leaf)
	if v.kept != nil {
		_, _ = v.kept.Write(leaf[:]) // Flush says whether it failed
	}
	v.compareRoots()
}

// compareRoots compares the tree so far with all checkpoints of its size.
func (v *verifier) compareRoots() {
	for v.met < len(v.marks) && v.marks[v.met].Size == v.tree.size && !v.stopped {
		m := v.marks[v.met]
		if m.Root != v.tree.rootHash() {
			v.mismatch(m)
			return
		}
		v.met++
		if m.kept {
			v.verdict.Kept = append(v.verdict.Kept, m.milestone())
		} else {
			v.verdict.Covered = uint64(m.Size)
		}
	}
}

// mismatch is a root that does not come out: one of the records since the last
// that did is bad.
func (v *verifier) mismatch(m mark) {
	from := int64(0)
	if v.met > 0 {
		from = v.marks[v.met-1].Size
	}
	switch {
	case m.kept:
		v.stopped = true
		v.problem(nil, "", 0, "the log is not the one that your checkpoint of %d records is of: its first %d records were rewritten", m.Size, m.Size)
	case from == m.Size-1:
		v.reportBad(uint64(from), "", 0, "record %d is not what the log checkpoint of %d records covers", from, m.Size)
	default:
		v.stopped = true
		v.problem(nil, m.file, m.at, "one or more of the records %d to %d are not what the log checkpoint of %d records covers, or that checkpoint was changed", from, m.Size-1, m.Size)
	}
}

// comparePersonal compares a record's personal data with what it committed to.
func (v *verifier) comparePersonal(seq uint64, of string, text []byte, personal *personalReader) error {
	if of == "" {
		return nil
	}
	e, ok, err := personal.findEntry(of)
	file := filepath.Base(personal.path)
	switch {
	case err != nil:
		return err
	case !ok:
		v.problem(&seq, file, 0, "the personal data of record %d are missing, and were not erased; the record itself is sound", seq)
	case e.Data == nil && !e.Erased.IsZero() && e.Seq == seq:
		v.tombstones = append(v.tombstones, tombstone{e, file, 1})
	case e.Seq != seq || e.Shared || !e.isOfRun(text) || !e.proves():
		v.problem(&seq, file, 0, "the personal data of record %d were changed: they are not what it committed to; the record itself is sound", seq)
	default:
		v.verdict.Personal++
	}
	return nil
}

// noteErasure remembers which records a record of an erasure names.
func (v *verifier) noteErasure(text []byte, seq uint64) {
	l, err := decodeLine(text, seq)
	if err != nil || l.Kind != KindLog || l.Detail["event"] != "erase" {
		return
	}
	spans, err := parseRanges(l.Detail["records"])
	if err != nil {
		v.problem(&seq, "", 0, "record %d is of an erasure, and does not say of what", seq)
		return
	}
	v.erasures = append(v.erasures, spans...)
}

// judgeErasures: what is erased must have been erased on record.
func (v *verifier) judgeErasures() {
	for _, t := range v.tombstones {
		named := slices.ContainsFunc(v.erasures, func(s seqRange) bool { return s.first <= t.Seq && t.Seq <= s.last })
		if named {
			v.verdict.Erased += t.records
			continue
		}
		// Else the record of it may be where was not read, or have come since.
		if v.stopped || t.Seq < v.away || t.Erased.After(v.begun) && !t.Erased.After(time.Now()) {
			v.verdict.ErasedUnproved += t.records
			continue
		}
		v.problem(&t.Seq, t.file, 0, "the personal data of record %d were erased, and no record says so", t.Seq)
	}
}
