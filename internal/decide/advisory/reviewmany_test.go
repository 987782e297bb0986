package advisory

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// inMemory is a log whose records are in no file. It gives up a reader that comes too often.
type inMemory struct {
	t       *testing.T
	records []audit.Record
	reads   int
}

const mostReads = 20

func (l *inMemory) Append(_ context.Context, r audit.Record) (audit.Record, error) {
	r.Seq = uint64(len(l.records))
	l.records = append(l.records, r)
	return r, nil
}

func (l *inMemory) Records(_ context.Context, f audit.Filter) iter.Seq2[audit.Record, error] {
	if l.reads++; l.reads > mostReads {
		l.t.Fatalf("the log is read for the %dth time", l.reads)
	}
	return func(yield func(audit.Record, error) bool) {
		for _, r := range l.records[min(f.FromSeq, uint64(len(l.records))):] {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (l *inMemory) Close() error { return nil }

// TestMoreSandboxesThanAreKept: however many sandboxes had a release, more than are kept at once too, each has one alarm, and the
// review ends. So does the next one, which finds that all have theirs, and one that a crash had cut short. The control
// is as many as are kept.
func TestMoreSandboxesThanAreKept(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "db"))
	mustImport(t, db, Job{Path: files(t, map[string]string{"a.json": burnt("MAL-0000-1", "npm", "bad-name")}), Label: "x"})
	for _, boxes := range []int{mostAlarms, 2*mostAlarms + 1} {
		log := &inMemory{t: t}
		for range 2 { // each has it twice
			for n := range boxes {
				note(t, log, audit.Served, fmt.Sprint("run-", n), "bad-name", "1.0.0")
			}
		}
		if _, err := db.Review(t.Context(), &cutShort{log, mostAlarms / 2}); err == nil {
			t.Fatal("INCONCLUSIVE: the review was not cut short")
		}
		mustReview(t, db, log)
		told := map[string]int{}
		for _, r := range log.records[2*boxes:] {
			told[r.Run]++
		}
		if len(told) != boxes || len(log.records) != 3*boxes {
			t.Errorf("of %d sandboxes %d are told of, by %d alarms", boxes, len(told), len(log.records)-2*boxes)
		}
		if again := mustReview(t, db, log); len(again) != 0 {
			t.Errorf("told once more: %v", again)
		}
	}
}
