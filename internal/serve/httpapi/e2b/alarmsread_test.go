package e2b

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// slowLog takes a second to be read, and counts who reads it.
type slowLog struct {
	alarmLog
	reads, now, most atomic.Int64
	passed           atomic.Int64 // records that were gone past
}

func (l *slowLog) Records(ctx context.Context, f audit.Filter) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		l.reads.Add(1)
		l.passed.Add(int64(len(l.records)) - int64(f.FromSeq))
		now := l.now.Add(1)
		for most := l.most.Load(); now > most; most = l.most.Load() {
			l.most.CompareAndSwap(most, now)
		}
		defer l.now.Add(-1)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			yield(audit.Record{}, ctx.Err())
			return
		}
		for r, err := range l.alarmLog.Records(ctx, f) {
			if !yield(r, err) {
				return
			}
		}
	}
}

// TestTheLogIsReadOnceForAllWhoHearOfAlarms: however many follow a command that ends, and however many sandboxes there
// are, and all of them are told. A caller that leaves does not wait for the reading, and does not end it for the others.
func TestTheLogIsReadOnceForAllWhoHearOfAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &slowLog{}
		news := newAlarmNews(log)
		boxes := []string{"sb-1", "sb-2", "sb-3"}
		for _, id := range boxes {
			news.watchAlarms(id, func(string) bool { return false })
		}
		for i := range 1000 {
			log.add([]string{"sb-1", "sb-2", "sb-other"}[min(i, 2)], fmt.Sprintf("alarm %d", i))
		}
		var all sync.WaitGroup
		leaving, leave := context.WithCancel(t.Context())
		all.Go(func() { news.newAlarms(leaving, "sb-1") })
		synctest.Wait()
		var silent, wrong atomic.Int64
		for i := range 300 {
			all.Go(func() {
				lines, _ := news.newAlarms(t.Context(), boxes[i%3])
				if box := i % 3; box < 2 && len(lines) == 0 {
					silent.Add(1)
				} else if box < 2 && (len(lines) != 1 || !strings.Contains(lines[0], fmt.Sprintf("alarm %d;", box))) || box == 2 && len(lines) != 0 {
					wrong.Add(1)
				}
			})
		}
		synctest.Wait()
		leave()
		all.Wait()
		if silent.Load() != 0 || wrong.Load() != 0 {
			t.Errorf("%d were not told, %d were told something else", silent.Load(), wrong.Load())
		}
		if log.reads.Load() > 2 || log.most.Load() > 1 || log.passed.Load() > 1000 {
			t.Errorf("the log was read %d times, %d at a time, past %d records of 1000", log.reads.Load(), log.most.Load(), log.passed.Load())
		}
	})
}

// TestAlarmsThatNobodyHeardOfAreBounded: of very many the first are told with their number, and those that come later
// after that, as ever.
func TestAlarmsThatNobodyHeardOfAreBounded(t *testing.T) {
	log := &alarmLog{}
	news := newAlarmNews(log)
	news.watchAlarms(boxID, func(string) bool { return false })
	const many = maxAlarmsKept + 100
	for i := range many {
		log.add(boxID, fmt.Sprintf("alarm %d", i))
	}
	for range 2 { // the second client hears of them too: nobody has told yet that the first has them
		lines, _ := news.newAlarms(t.Context(), boxID)
		if len(lines) != maxAlarms+1 || !strings.Contains(lines[maxAlarms], fmt.Sprintf("%d in all", many)) {
			t.Fatalf("%q", lines)
		}
	}
	_, told := news.newAlarms(t.Context(), boxID)
	log.add(boxID, "between")
	told()
	told()
	if lines, told := news.newAlarms(t.Context(), boxID); len(lines) != 1 || !strings.Contains(lines[0], "between") {
		t.Errorf("%q", lines)
	} else {
		told()
	}
	if lines, _ := news.newAlarms(t.Context(), boxID); len(lines) != 0 || len(news.watched[boxID].kept) != 0 || news.watched[boxID].more != 0 {
		t.Errorf("%q", lines)
	}
}

// stuckLog can't be read.
type stuckLog struct{ alarmLog }

func (l *stuckLog) Records(ctx context.Context, _ audit.Filter) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		<-ctx.Done()
		yield(audit.Record{}, ctx.Err())
	}
}

// TestALogThatCannotBeReadKeepsNobodyForLong: all who wait for one reading are told that it came to nothing, and none
// begins another one behind it.
func TestALogThatCannotBeReadKeepsNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &stuckLog{}
		news := newAlarmNews(log)
		news.watchAlarms(boxID, func(string) bool { return false })
		log.add(boxID, "an alarm")
		began := time.Now()
		var all sync.WaitGroup
		var silent atomic.Int64
		for range 100 {
			all.Go(func() {
				if lines, _ := news.newAlarms(t.Context(), boxID); len(lines) != 1 || !strings.Contains(lines[0], "not known") {
					silent.Add(1)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); silent.Load() != 0 || took > 2*alarmReadTime {
			t.Errorf("%d were not told, and the last one of 100 after %v", silent.Load(), took)
		}
	})
}
