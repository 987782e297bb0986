package daemon

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// shyLog can't be read the first times.
type shyLog struct {
	mu      sync.Mutex // guards all
	refuses int
	records []audit.Record
	grown   chan struct{}
}

func (l *shyLog) add(r audit.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Seq = uint64(len(l.records))
	l.records = append(l.records, r)
	close(l.grown)
	l.grown = make(chan struct{})
}

// End implements alarms.Log.
func (l *shyLog) End() (uint64, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(len(l.records)), l.grown
}

// Records implements alarms.Log.
func (l *shyLog) Records(_ context.Context, f audit.Filter) iter.Seq2[audit.Record, error] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuses > 0 {
		l.refuses--
		return func(yield func(audit.Record, error) bool) { yield(audit.Record{}, errors.New("too many open files")) }
	}
	records := l.records
	return func(yield func(audit.Record, error) bool) {
		for _, r := range records {
			if r.Seq >= f.FromSeq && r.IsAlarm() && !yield(r, nil) {
				return
			}
		}
	}
}

func alarmOf(name string) audit.Record {
	return audit.Record{Kind: audit.KindPackage, Outcome: audit.Alarm, Ecosystem: "python", Package: name, InstalledVersion: "1.0"}
}

// TestAlarmsAreToldAfterALogThatCouldNotBeRead: each of them once, in order, also those that
// came just before the end.
func TestAlarmsAreToldAfterALogThatCouldNotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := &shyLog{refuses: 2, grown: make(chan struct{})}
		follower := followAlarms(t.Context(), l, nil, slog.New(slog.NewTextHandler(&out, nil)))
		l.add(alarmOf("one"))
		synctest.Wait()
		for range 3 { // pauses
			<-time.After(lastLookAgain)
		}
		l.add(alarmOf("two"))
		<-time.After(lastLookAgain)
		l.add(alarmOf("three"))
		follower.endFollower() // at once
		told := ""
		for line := range strings.Lines(out.String()) {
			if _, about, found := strings.Cut(line, `about="python `); found {
				told += strings.Fields(about)[0] + " "
			}
		}
		if told != "one two three " {
			t.Errorf("it tells of %q:\n%s", told, out.String())
		}
	})
}
