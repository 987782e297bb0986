package webhook_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/webhook"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/alarms"
)

// left are cursors of which an earlier daemon has left the one of alarms.
type left struct {
	*approvaltest.Memory

	cursor uint64
	known  bool
}

func (l *left) Cursor(ctx context.Context, hook string) (uint64, bool, error) {
	if number, known, err := l.Memory.Cursor(ctx, hook); known || err != nil || !strings.HasSuffix(hook, " alarms") {
		return number, known, err
	}
	return l.cursor, l.known, nil
}

// TestACursorPastTheLog: where the log was put back from a copy and the cursors were not, or the
// other way round, what comes from then on is told, and each once.
func TestACursorPastTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		cursor uint64
		known  bool
		want   string
	}{
		"of a new hook":          {0, false, "7 9 "},
		"where the log ends":     {7, true, "7 9 "},
		"before the log's end":   {4, true, "5 7 9 "},
		"past the log's end":     {8, true, "7 9 "},
		"far past the log's end": {1 << 40, true, "7 9 "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := install(t)
				on := []uint64{5, 7, 9} // the daemon's own begin with 7
				source := func(ctx context.Context, from uint64) iter.Seq2[alarms.Step, error] {
					return func(yield func(alarms.Step, error) bool) {
						for _, seq := range on {
							if seq >= from && !yield(alarms.Step{Next: seq + 1, Alarm: &audit.Record{Seq: seq, Time: time.Now(), Kind: audit.KindLog, Outcome: audit.Alarm}}, nil) {
								return
							}
						}
						<-ctx.Done()
					}
				}
				s, err := webhook.New(webhook.Config{
					Hooks: []webhook.Hook{w.hook}, Source: w.Queue, Cursors: &left{Memory: w.store, cursor: c.cursor, known: c.known}, Transport: w.receiver, Alarms: source, FirstAlarm: 7,
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); s.Run(ctx) }()
				synctest.Wait()
				stop()
				<-done
				told := ""
				for _, body := range w.receiver.bodies {
					_, rest, _ := strings.Cut(string(body), `"record":`)
					told += rest[:strings.IndexAny(rest, ",}")] + " "
				}
				if told != c.want {
					t.Errorf("it tells of %q, want %q", told, c.want)
				}
			})
		})
	}
}
