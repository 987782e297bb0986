package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Records implements Log: the selected records that were durable when the
// iteration began, in order. Writers are not held up. Records whose segment is
// elsewhere are passed over; personal data are joined to the rest, and where they
// were erased the record says so. A damaged line ends the iteration with an
// error, as does the context's end.
func (l *FileLog) Records(ctx context.Context, f Filter) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		l.mu.Lock()
		segments, next := slices.Clone(l.bounds), l.next
		l.mu.Unlock()
		s := selector{filter: f, hints: f.lineHints(), marks: &l.marks, shared: &l.shared, proof: l.proof}
		s.records(ctx, l.dir, segments, next, yield)
	}
}

// records yields the selected records of the segments, before the record next.
func (s selector) records(ctx context.Context, dir string, segments []segment, next uint64, yield func(Record, error) bool) {
	for i, b := range segments {
		end := next
		if i+1 < len(segments) {
			end = segments[i+1].first
		}
		if _, more := s.nextSeq(b.first, end); !more || b.form == elsewhere {
			continue
		}
		s.personal = &personalCursor{path: filepath.Join(dir, personalName(b.first)), shared: s.shared, proof: s.proof}
		goOn := readSegment(ctx, dir, b, end, s, yield)
		_ = s.personal.close() // it was only read
		if !goOn {
			return
		}
	}
}

// readSegment yields the selected records of one segment, up to but not
// including end, and reports whether to go on.
func readSegment(ctx context.Context, dir string, b segment, end uint64, s selector, yield func(Record, error) bool) bool {
	file, moved, err := openSegment(dir, b)
	if moved && s.proof == nil {
		return true
	}
	if err != nil {
		yield(Record{}, fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read"))
		return false
	}
	defer file.close()
	lines := bufio.NewReaderSize(file, MaxRecord)
	offset := int64(0)
	for seq := b.first; seq < end; seq++ {
		wanted, more := s.nextSeq(seq, end)
		if !more {
			return true
		}
		if wanted >= seq+markEvery {
			if at, there := s.marks.nearest(b.first, wanted); at > seq {
				if err := file.skipBytes(lines, there-offset); err != nil {
					yield(Record{}, readFault(err, at))
					return false
				}
				seq, offset = at, there
			}
		}
		s.marks.noteMark(b.first, seq, offset)
		if err := ctx.Err(); err != nil {
			yield(Record{}, err)
			return false
		}
		text, err := lines.ReadSlice('\n')
		if err != nil {
			yield(Record{}, readFault(err, seq))
			return false
		}
		offset += int64(len(text))
		r, selected, err := s.pickRecord(text, seq)
		if (selected || err != nil) && !yield(r, err) || err != nil {
			return false
		}
	}
	return true
}

// openSegment opens a segment that may have been sealed since the iteration began;
// moved: it is not here any more.
func openSegment(dir string, b segment) (file *lineFile, moved bool, err error) {
	file, err = openLines(dir, b)
	if errors.Is(err, os.ErrNotExist) && b.form == plain {
		b.form = sealed
		file, err = openLines(dir, b)
	}
	return file, errors.Is(err, os.ErrNotExist) && b.form == sealed, err
}

// eachLine yields the lines, newline included, while each is whole and no longer
// than a record may be; a torn end is no line. A line is good until the next.
func eachLine(file io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewReaderSize(file, MaxRecord)
		for {
			text, err := lines.ReadSlice('\n')
			if errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
				return
			}
			if !yield(text, err) || err != nil {
				return
			}
		}
	}
}

func readFault(err error, seq uint64) error {
	if errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
		return fault.Wrap(fault.ErrInvalid, err, "the log is damaged: record %d is not where it belongs", seq)
	}
	return fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read")
}

// selector decides which lines are wanted. Its hints are strings that a wanted
// line must contain: most lines are passed over without being decoded.
type selector struct {
	filter Filter
	hints  [][]byte
	marks  *marks
	// personal reads the personal data of the segment that is being read.
	personal *personalCursor
	shared   *sharedEntries
	proof    *proof // nil: nothing was verified
}

func (f Filter) lineHints() [][]byte {
	var hints [][]byte
	add := func(key, value string) {
		if value == "" {
			return
		}
		if text, err := canonical(value); err == nil {
			hints = append(hints, slices.Concat([]byte(`"`+key+`":`), bytes.TrimSuffix(text, []byte("\n"))))
		}
	}
	add("agent_run_id", f.Run)
	add("sandbox", f.Sandbox)
	return hints
}

func (s selector) pickRecord(text []byte, seq uint64) (Record, bool, error) {
	if err := s.proof.checkLine(seq, text); err != nil {
		return Record{}, false, err
	}
	got, ok := seqOf(text)
	if !ok || got != seq {
		return Record{}, false, fault.Invalid("the log is damaged: record %d is not where it belongs", seq)
	}
	if wanted, _ := s.nextSeq(seq, seq+1); wanted != seq {
		return Record{}, false, nil
	}
	for _, hint := range s.hints {
		if !bytes.Contains(text, hint) {
			return Record{}, false, nil
		}
	}
	if s.filter.Alarms && !hintsAtAlarm(text) {
		return Record{}, false, nil
	}
	l, err := decodeLine(text, seq)
	if err != nil {
		return Record{}, false, err
	}
	if !s.filter.selects(l.Record) {
		return Record{}, false, nil
	}
	r, err := s.personal.joinPersonal(l)
	return r, err == nil && s.filter.concerns(r), err
}

// hintsAtAlarm passes over most lines that are no alarm without decoding them.
func hintsAtAlarm(line []byte) bool {
	return bytes.Contains(line, []byte(`"`+DetailAlarm+`":"`+detailTrue+`"`)) || bytes.Contains(line, []byte(`"outcome":"`+string(Alarm)+`"`))
}

// nextSeq returns the first record from seq on, and before end, that can be selected
// as far as its number says; false: there is none.
func (s selector) nextSeq(seq, end uint64) (uint64, bool) {
	seq = max(seq, s.filter.FromSeq)
	if s.filter.Seqs != nil {
		i, _ := slices.BinarySearch(s.filter.Seqs, seq)
		if i == len(s.filter.Seqs) {
			return end, false
		}
		seq = s.filter.Seqs[i]
	}
	return seq, seq < end
}

// concerns reports whether the filter selects r by what is kept beside its line.
func (f Filter) concerns(r Record) bool {
	return (f.User == "" || f.User == r.User) && (f.Token == "" || f.Token == r.OwnerToken())
}

// selects reports whether the filter selects r, by its line.
func (f Filter) selects(r Record) bool {
	return r.Seq >= f.FromSeq &&
		(f.Run == "" || f.Run == r.Run) &&
		(f.Sandbox == "" || f.Sandbox == r.Sandbox) &&
		(!f.Alarms || r.IsAlarm()) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, r.Kind)) &&
		(len(f.Outcomes) == 0 || slices.Contains(f.Outcomes, r.Outcome))
}
