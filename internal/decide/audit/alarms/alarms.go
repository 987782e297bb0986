// Package alarms follows a log for its alarms, so that who is told of them hears of all,
// whoever appended them: the log's own writer, too.
package alarms

import (
	"context"
	"iter"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// Log is audit.FileLog, as far as it is followed.
type Log interface {
	Records(ctx context.Context, f audit.Filter) iter.Seq2[audit.Record, error]
	// End is the next record's number, and what is closed when there is another record.
	End() (next uint64, grown <-chan struct{})
}

const (
	// pause is the least time between two looks at a log that grows all the time.
	pause = 200 * time.Millisecond
	// stride is after how many records without an alarm a follower is told how far it is.
	stride = 4_096
)

// Step is how far a follower is.
type Step struct {
	Next  uint64        // the first record that was not looked at; a follower goes on there
	Alarm *audit.Record // record Next-1; nil: there was none, and Next is all there is to know
}

// Watch yields the alarms of the log from a record on, then new ones as they come, until ctx
// ends (which is no error) or the log can't be read.
func Watch(ctx context.Context, log Log, from uint64) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		told := from
		for {
			next, grown := log.End()
			for r, err := range log.Records(ctx, audit.Filter{FromSeq: from, Alarms: true}) {
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					yield(Step{}, err)
					return
				}
				if from, told = r.Seq+1, r.Seq+1; !yield(Step{Next: from, Alarm: &r}, nil) {
					return
				}
			}
			if from = max(from, next); from-told >= stride {
				if told = from; !yield(Step{Next: from}, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-grown:
			}
			if !restBetweenReads(ctx) {
				return
			}
		}
	}
}

// restBetweenReads keeps a busy log from being read for each of its records.
func restBetweenReads(ctx context.Context) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
