package webhook_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/webhook"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/alarms"
)

// TestWhoseAnAlarmOfTwoRunsIs: an alarm that a review has found later tells whose it is, also where the
// owner had the release in two runs, which its record names then in their own field. The control: of one
// run, it does.
func TestWhoseAnAlarmOfTwoRunsIs(t *testing.T) {
	for run, runs := range map[string]string{"r1": "r1", "": "r1 r2"} {
		synctest.Test(t, func(t *testing.T) {
			w := install(t)
			source := func(ctx context.Context, from uint64) iter.Seq2[alarms.Step, error] {
				return func(yield func(alarms.Step, error) bool) {
					if from == 0 {
						yield(alarms.Step{Next: 1, Alarm: &audit.Record{
							Time: time.Now(), Kind: audit.KindPackage, Outcome: audit.Alarm, Run: run, User: "ann", Token: "tk1", Ecosystem: "node", Package: "bad-name", InstalledVersion: "1.0.0",
							Detail: map[string]string{"event": "served_before", audit.DetailRuns: runs},
						}}, nil)
					}
					<-ctx.Done()
				}
			}
			s, err := webhook.New(webhook.Config{Hooks: []webhook.Hook{w.hook}, Source: w.Queue, Cursors: w.store, Transport: w.receiver, Alarms: source})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); s.Run(ctx) }()
			synctest.Wait()
			stop()
			<-done
			if len(w.receiver.bodies) != 1 {
				t.Fatalf("INCONCLUSIVE: %d deliveries", len(w.receiver.bodies))
			}
			var told webhook.AlarmBody
			if err := json.Unmarshal(w.receiver.bodies[0], &told); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(told.Owners, []string{"token tk1"}) {
				if run != "" {
					t.Fatalf("INCONCLUSIVE: of one run: %q", told.Owners)
				}
				t.Errorf("the alarm of the runs %q is %q's: %s", runs, told.Owners, w.receiver.bodies[0])
			}
		})
	}
}
