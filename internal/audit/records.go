package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Records implements Log: the selected records that were durable when the
// iteration began, in order. Writers are not held up. A damaged line ends the
// iteration with an error, as does the context's end.
func (l *FileLog) Records(ctx context.Context, f Filter) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		l.mu.Lock()
		bounds, next := slices.Clone(l.bounds), l.next
		l.mu.Unlock()
		s := selector{filter: f, hints: f.hints()}
		for i, b := range bounds {
			end := next
			if i+1 < len(bounds) {
				end = bounds[i+1].first
			}
			if _, more := s.next(b.first, end); !more {
				continue
			}
			if !l.readSegment(ctx, b, end, s, yield) {
				return
			}
		}
	}
}

// readSegment yields the selected records of one segment, up to but not
// including end, and reports whether to go on.
func (l *FileLog) readSegment(ctx context.Context, b segment, end uint64, s selector, yield func(Record, error) bool) bool {
	file, err := os.Open(filepath.Join(l.dir, segmentName(b.first)))
	if err != nil {
		yield(Record{}, fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read"))
		return false
	}
	defer file.Close()
	lines := bufio.NewReaderSize(io.NewSectionReader(file, 0, b.size), MaxRecord)
	offset := int64(0)
	for seq := b.first; seq < end; seq++ {
		wanted, more := s.next(seq, end)
		if !more {
			return true
		}
		if wanted >= seq+markEvery {
			if at, there := l.marks.nearest(b.first, wanted); at > seq {
				seq, offset = at, there
				lines.Reset(io.NewSectionReader(file, offset, b.size-offset))
			}
		}
		l.marks.note(b.first, seq, offset)
		if err := ctx.Err(); err != nil {
			yield(Record{}, err)
			return false
		}
		line, err := lines.ReadSlice('\n')
		if err != nil {
			yield(Record{}, readFault(err, seq))
			return false
		}
		offset += int64(len(line))
		r, selected, err := s.pick(line, seq)
		if (selected || err != nil) && !yield(r, err) || err != nil {
			return false
		}
	}
	return true
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
}

func (f Filter) hints() [][]byte {
	var hints [][]byte
	add := func(key, value string) {
		if value == "" {
			return
		}
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(value); err == nil {
			text := escapeControls(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
			hints = append(hints, slices.Concat([]byte(`"`+key+`":`), text))
		}
	}
	add("agent_run_id", f.Run)
	add("sandbox", f.Sandbox)
	return hints
}

func (s selector) pick(line []byte, seq uint64) (Record, bool, error) {
	got, ok := seqOf(line)
	if !ok || got != seq {
		return Record{}, false, fault.Invalid("the log is damaged: record %d is not where it belongs", seq)
	}
	if wanted, _ := s.next(seq, seq+1); wanted != seq {
		return Record{}, false, nil
	}
	for _, hint := range s.hints {
		if !bytes.Contains(line, hint) {
			return Record{}, false, nil
		}
	}
	r, err := decode(line, seq)
	if err != nil {
		return Record{}, false, err
	}
	return r, s.filter.selects(r), nil
}

// next returns the first record from seq on, and before end, that can be selected
// as far as its number says; false: there is none.
func (s selector) next(seq, end uint64) (uint64, bool) {
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

// selects reports whether the filter selects r.
func (f Filter) selects(r Record) bool {
	return r.Seq >= f.FromSeq &&
		(f.Run == "" || f.Run == r.Run) &&
		(f.Sandbox == "" || f.Sandbox == r.Sandbox) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, r.Kind)) &&
		(len(f.Outcomes) == 0 || slices.Contains(f.Outcomes, r.Outcome))
}
