package approvaltest

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Log is an audit.Log in memory, whose clock is time.Now. Its records come back
// as they would from a disk.
type Log struct {
	mu      sync.Mutex // guards all
	records []audit.Record
	fail    func(audit.Record) error
}

var _ audit.Log = (*Log)(nil)

// FailWhen makes Append fail where fail gives an error, until it is called with
// nil.
func (l *Log) FailWhen(fail func(audit.Record) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = fail
}

// Append implements audit.Log.
func (l *Log) Append(ctx context.Context, r audit.Record) (audit.Record, error) {
	if err := ctx.Err(); err != nil {
		return r, fault.Wrap(fault.ErrUnavailable, err, "the record was not written")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		if err := l.fail(r); err != nil {
			return r, fault.Wrap(fault.ErrUnavailable, err, "the record was not written")
		}
	}
	r.Seq, r.Time = uint64(len(l.records)), time.Now().UTC().Round(0)
	text, err := json.Marshal(r)
	if err != nil {
		return r, err
	}
	if len(text) > audit.MaxRecord {
		return r, fault.Invalid("the record is %d bytes long", len(text))
	}
	var kept audit.Record
	if err := json.Unmarshal(text, &kept); err != nil {
		return r, err
	}
	l.records = append(l.records, kept)
	return r, nil
}

// Records implements audit.Log.
func (l *Log) Records(_ context.Context, f audit.Filter) iter.Seq2[audit.Record, error] {
	l.mu.Lock()
	records := slices.Clone(l.records)
	l.mu.Unlock()
	return func(yield func(audit.Record, error) bool) {
		for _, r := range records {
			if r.Seq < f.FromSeq || f.Run != "" && r.Run != f.Run || f.Sandbox != "" && r.Sandbox != f.Sandbox ||
				len(f.Kinds) > 0 && !slices.Contains(f.Kinds, r.Kind) || len(f.Outcomes) > 0 && !slices.Contains(f.Outcomes, r.Outcome) {
				continue
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// All are the records that there are.
func (l *Log) All() []audit.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.records)
}

// Close implements audit.Log.
func (l *Log) Close() error { return nil }
