package daemon

import (
	"context"
	"iter"
	"log/slog"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/audit/alarms"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/telemetry"
)

// alarmFollower counts the log's alarms and tells the operator's log of them. It reads them
// from the log, so that none is missed that does not come through the daemon: the log itself
// records a jump of the clock.
type alarmFollower struct {
	log   alarms.Log
	first uint64 // record of this daemon
	quiet func() // ends it and waits for that; nil: it was never begun
}

// followAlarms begins with the log's next record: nothing of this daemon is in it yet.
func followAlarms(ctx context.Context, log alarms.Log, tel *telemetry.Telemetry, operator *slog.Logger) alarmFollower {
	first, _ := log.End()
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	errand.Go(func() {
		defer close(done)
		errand.Stay(following, func() { tellAlarms(following, log, first, tel, operator) })
	})
	return alarmFollower{log: log, first: first, quiet: func() {
		stop()
		<-done
	}}
}

func tellAlarms(ctx context.Context, log alarms.Log, from uint64, tel *telemetry.Telemetry, operator *slog.Logger) {
	for step, err := range alarms.Watch(ctx, log, from) {
		if err != nil {
			operator.ErrorContext(ctx, "the alarms of the log can't be read, so they are counted no more", "err", err)
			return
		}
		if step.Alarm == nil {
			continue
		}
		r := *step.Alarm
		if tel != nil {
			tel.Alarmed(string(r.Kind), max(1, r.Count))
		}
		operator.WarnContext(ctx, "an alarm is on record", "record", r.Seq, "kind", r.Kind, "outcome", r.Outcome,
			"run", r.Run, "sandbox", r.Sandbox, "about", aboutOf(r), "rule", r.Rule, "why", r.Reason)
	}
}

// aboutOf is what a record is about; others wrote it.
func aboutOf(r audit.Record) string {
	if r.Package != "" {
		return r.Ecosystem + " " + r.Package + " " + r.InstalledVersion
	}
	return r.Detail["name"]
}

// watch is a webhook.AlarmSource.
func (f alarmFollower) watch(ctx context.Context, from uint64) iter.Seq2[alarms.Step, error] {
	return alarms.Watch(ctx, f.log, from)
}

func (f alarmFollower) end() {
	if f.quiet != nil {
		f.quiet()
	}
}
