package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// EraseAsk says whose personal data are to be erased. Exactly one of Run and
// Record is set.
type EraseAsk struct {
	Run    string
	Record *uint64
	Reason string
	By     string
}

// EraseReport is what was erased.
type EraseReport struct {
	Records []uint64 `json:"records"`
}

// Erase removes personal data, with their salts, from the personal files, durably.
// The lines stay, and so does every proof: they have only hashes that tell nothing
// without the salt. A record of the intent goes before, and one of the deed
// follows. fault.ErrNotFound if there is nothing to erase.
//
// Not guaranteed: copies, backups, exports, and blocks that a disk has given free
// but not overwritten.
func (l *FileLog) Erase(ctx context.Context, ask EraseAsk) (EraseReport, error) {
	if (ask.Run == "") == (ask.Record == nil) {
		return EraseReport{}, fault.Invalid("name a run or a record whose personal data are to be erased")
	}
	chosen, err := l.personalOf(ask)
	if err != nil {
		return EraseReport{}, err
	}
	if len(chosen) == 0 {
		return EraseReport{}, fault.New(fault.ErrNotFound, "there are no personal data of %s on record", ask.whose())
	}
	r := Record{
		Kind: KindLog, Outcome: Started, User: ask.By,
		Reason: "Personal data of " + ask.whose() + " are to be erased.",
		Detail: map[string]string{"event": "erase", "records": ranges(chosen)},
	}
	if ask.Reason != "" {
		r.Detail["note"] = ask.Reason
	}
	if _, err := l.Append(ctx, r); err != nil {
		return EraseReport{}, err
	}
	if err := l.eraseEntries(chosen); err != nil {
		return EraseReport{}, fault.Wrap(fault.ErrUnavailable, err, "not all personal data of %s are erased; ask again", ask.whose())
	}
	r.Outcome, r.Reason = Erased, "Personal data of "+ask.whose()+" were erased."
	_, err = l.Append(context.WithoutCancel(ctx), r)
	return EraseReport{Records: chosen}, err
}

// watchErasure remembers which erasures have begun and not ended.
func (l *FileLog) watchErasure(r Record) {
	if r.Kind != KindLog || r.Detail["event"] != "erase" {
		return
	}
	l.erasing = slices.DeleteFunc(l.erasing, func(records string) bool { return records == r.Detail["records"] })
	if r.Outcome == Started {
		l.erasing = append(l.erasing, r.Detail["records"])
	}
}

// finishErasures does what a crash left undone of erasures, and records it: who
// has taken the data from the log learns only by that record that they are gone. On
// a full disk it is left to the next Open.
func (l *FileLog) finishErasures() {
	for _, records := range l.erasing {
		spans, err := parseRanges(records)
		if err != nil {
			continue // Verify tells
		}
		var chosen []uint64
		for _, s := range spans {
			for seq := s.first; seq <= s.last && seq < l.writer.next; seq++ {
				chosen = append(chosen, seq)
			}
		}
		if err := l.eraseEntries(chosen); err != nil {
			continue
		}
		_, _ = l.Append(context.Background(), Record{
			Kind: KindLog, Outcome: Erased, Reason: "Personal data were erased; the daemon's end had interrupted it.",
			Detail: map[string]string{"event": "erase", "records": records},
		})
	}
	l.erasing = nil
}

func (a EraseAsk) whose() string {
	if a.Record != nil {
		return fmt.Sprintf("record %d", *a.Record)
	}
	return fmt.Sprintf("run %.200q", a.Run)
}

func (a EraseAsk) means(e personalEntry) bool {
	if e.Data == nil {
		return false
	}
	if a.Record != nil {
		return e.Seq == *a.Record
	}
	return e.Run == a.Run
}

// personalOf lists the durable records that the ask means, in order.
func (l *FileLog) personalOf(ask EraseAsk) ([]uint64, error) {
	l.mu.Lock()
	segments, next := slices.Clone(l.bounds), l.next
	l.mu.Unlock()
	var chosen []uint64
	for _, s := range segments {
		entries, err := readPersonal(filepath.Join(l.dir, personalName(s.first)))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if ask.means(e) && e.Seq < next {
				chosen = append(chosen, e.Seq)
			}
		}
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), nil
}

// eraseEntries writes the personal files anew without the records' data. The
// writer does it, so that the file it has open is not written meanwhile.
func (l *FileLog) eraseEntries(chosen []uint64) error {
	return l.between(func() error {
		l.mu.Lock()
		segments := slices.Clone(l.bounds)
		l.mu.Unlock()
		for i, s := range segments {
			end := l.writer.next
			if i+1 < len(segments) {
				end = segments[i+1].first
			}
			first, _ := slices.BinarySearch(chosen, s.first)
			last, _ := slices.BinarySearch(chosen, end)
			if first == last {
				continue
			}
			if err := l.eraseIn(s, chosen[first:last]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *FileLog) eraseIn(s segment, chosen []uint64) error {
	path := filepath.Join(l.dir, personalName(s.first))
	entries, err := readPersonal(path)
	if err != nil {
		return err
	}
	w := &l.writer
	at := l.options.Clock.Read().Now.UTC().Round(0)
	var size int64
	err = replace(w.disk, path, func(out io.Writer) error {
		var text []byte
		for _, e := range entries {
			if e.Seq >= w.next {
				continue // of a record that never came to be
			}
			if _, ok := slices.BinarySearch(chosen, e.Seq); ok {
				e = personalEntry{Seq: e.Seq, Of: e.Of, Run: e.Run, Erased: at}
			}
			one, err := canonical(e)
			if err != nil {
				return err
			}
			text = append(text, one...)
		}
		size = int64(len(text))
		_, err := out.Write(text)
		return err
	})
	if w.file == nil || s.first != w.first {
		return err
	}
	// Whatever became of it, the file that is open may not be the one of that name.
	if err := errors.Join(err, w.personal.close()); err != nil {
		return errors.Join(err, w.recoverPersonal())
	}
	w.personal.size = size
	return nil
}

// ranges writes ascending numbers as "3 7-9 12".
func ranges(seqs []uint64) string {
	var b strings.Builder
	for i := 0; i < len(seqs); {
		j := i
		for j+1 < len(seqs) && seqs[j+1] == seqs[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.FormatUint(seqs[i], 10))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.FormatUint(seqs[j], 10))
		}
		i = j + 1
	}
	return b.String()
}

// span is a range of record numbers, both ends included.
type span struct{ first, last uint64 }

// parseRanges reads what ranges wrote.
func parseRanges(text string) ([]span, error) {
	var spans []span
	for word := range strings.FieldsSeq(text) {
		from, to, two := strings.Cut(word, "-")
		if !two {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 64)
		last, err2 := strconv.ParseUint(to, 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		spans = append(spans, span{first, last})
	}
	return spans, nil
}
