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
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
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
		return EraseReport{}, ask.nothing()
	}
	r := Record{
		Kind: KindLog, Outcome: Started, User: ask.By,
		Reason: "Personal data of " + ask.describeWhose() + " are to be erased.",
		Detail: map[string]string{"event": "erase", "records": ranges(chosen)},
	}
	if ask.Reason != "" {
		r.Detail["note"] = ask.Reason
	}
	if ask.Record != nil {
		r.Detail[detailShared] = sharedKept
	}
	if _, err := l.Append(ctx, r); err != nil {
		return EraseReport{}, err
	}
	if err := l.eraseEntries(erasure{records: chosen, shared: ask.Record == nil}); err != nil {
		return EraseReport{}, fault.Wrap(fault.ErrUnavailable, err, "not all personal data of %s are erased; ask again", ask.describeWhose())
	}
	r.Outcome, r.Reason = Erased, "Personal data of "+ask.describeWhose()+" were erased."
	_, err = l.Append(context.WithoutCancel(ctx), r)
	return EraseReport{Records: chosen}, err
}

// Of the records of an erasure: whose run it is was not erased, since the ask was for one
// record and others share it.
const (
	detailShared = "owner"
	sharedKept   = "kept"
)

// erasure is what is erased: what is personal in records, and with shared whose run it is,
// where the first of these is the first that has it.
type erasure struct {
	records []uint64 // ascending
	shared  bool
}

func (e erasure) isOf(entry personalEntry) bool {
	_, chosen := slices.BinarySearch(e.records, entry.Seq)
	return chosen && (e.shared || !entry.Shared)
}

// begunErasure is an erasure as its record tells of it.
type begunErasure struct{ records, shared string }

// watchErasure remembers which erasures have begun and not ended.
func (l *FileLog) watchErasure(r Record) {
	if r.Kind != KindLog || r.Detail["event"] != "erase" {
		return
	}
	told := begunErasure{r.Detail["records"], r.Detail[detailShared]}
	l.erasing = slices.DeleteFunc(l.erasing, func(e begunErasure) bool { return e == told })
	if r.Outcome == Started {
		l.erasing = append(l.erasing, told)
	}
}

// finishErasures does what a crash left undone of erasures, and records it: who
// has taken the data from the log learns only by that record that they are gone. On
// a full disk it is left to the next Open.
func (l *FileLog) finishErasures() {
	for _, e := range l.erasing {
		spans, err := parseRanges(e.records)
		if err != nil {
			continue // Verify tells
		}
		var chosen []uint64
		for _, s := range spans {
			for seq := s.first; seq <= s.last && seq < l.writer.next; seq++ {
				chosen = append(chosen, seq)
			}
		}
		if err := l.eraseEntries(erasure{records: chosen, shared: e.shared != sharedKept}); err != nil {
			continue
		}
		detail := map[string]string{"event": "erase", "records": e.records}
		if e.shared != "" {
			detail[detailShared] = e.shared
		}
		_, _ = l.Append(context.Background(), Record{
			Kind: KindLog, Outcome: Erased, Reason: "Personal data were erased; the daemon's end had interrupted it.", Detail: detail,
		})
	}
	l.erasing = nil
}

func (a EraseAsk) describeWhose() string {
	if a.Record != nil {
		return fmt.Sprintf("record %d", *a.Record)
	}
	return fmt.Sprintf("run %.200q", a.Run)
}

// nothing is the answer where there is nothing to erase.
func (a EraseAsk) nothing() error {
	if a.Record != nil {
		return fault.New(fault.ErrNotFound, "there are no personal data of %s alone on record; whose run it is of is kept once for all of the run's records, and is erased with them (--run)", a.describeWhose())
	}
	return fault.New(fault.ErrNotFound, "there are no personal data of %s on record", a.describeWhose())
}

func (a EraseAsk) meansEntry(e personalEntry) bool {
	if e.Data == nil {
		return false
	}
	if a.Record != nil {
		return e.Seq == *a.Record && !e.Shared
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
			if ask.meansEntry(e) && e.Seq < next {
				chosen = append(chosen, e.Seq)
			}
		}
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), nil
}

// eraseEntries writes the personal files anew without the records' data. The
// writer does it, so that the file it has open is not written meanwhile.
func (l *FileLog) eraseEntries(all erasure) error {
	chosen := all.records
	return l.between(func() error {
		defer l.shared.forgetEntries()
		if all.shared {
			l.owners.forgetEntries()
		}
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
			if err := l.eraseIn(s, erasure{records: chosen[first:last], shared: all.shared}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *FileLog) eraseIn(s segment, chosen erasure) error {
	path := filepath.Join(l.dir, personalName(s.first))
	entries, err := readPersonal(path)
	if err != nil {
		return err
	}
	w := &l.writer
	at := l.options.Clock.Read().Now.UTC().Round(0)
	var size int64
	var left []string // what is shared, and stays
	err = replace(w.disk, path, func(out io.Writer) error {
		var text []byte
		for _, e := range entries {
			if e.Seq >= w.next {
				continue // of a record that never came to be
			}
			if chosen.isOf(e) {
				e = w.tombstone(e, at)
			} else if e.Shared {
				left = append(left, e.Of)
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
	for _, of := range left {
		w.personal.shareEntry(of)
	}
	return nil
}

// tombstone is what is left of an entry; no more lines may commit to it.
func (w *writer) tombstone(e personalEntry, at time.Time) personalEntry {
	if e.Shared {
		if w.gone == nil {
			w.gone = map[string]bool{}
		}
		w.gone[e.Of] = true
	}
	return personalEntry{Seq: e.Seq, Of: e.Of, Run: e.Run, Shared: e.Shared, Erased: at}
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

// seqRange is a range of record numbers, both ends included.
type seqRange struct{ first, last uint64 }

// parseRanges reads what ranges wrote.
func parseRanges(text string) ([]seqRange, error) {
	var spans []seqRange
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
		spans = append(spans, seqRange{first, last})
	}
	return spans, nil
}
