package daemon

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/alarms"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
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
	f := alarmFollower{log: log, first: first}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	safego.Go(func() {
		defer close(done)
		next := first
		safego.Stay(following, func() { f.tellAlarms(following, &next, tel, operator) })
		f.tellRest(context.WithoutCancel(ctx), next, tel, operator)
	})
	f.quiet = func() {
		stop()
		<-done
	}
	return f
}

// The pauses after an error in reading the log.
const (
	firstLookAgain = time.Second
	lastLookAgain  = time.Minute
)

// tellAlarms tells of alarms from a record on until ctx ends, and moves next with them. A log that
// can't be read now is looked at again: nobody may stop hearing of alarms for it.
func (f alarmFollower) tellAlarms(ctx context.Context, next *uint64, tel *telemetry.Telemetry, operator *slog.Logger) {
	for pause := firstLookAgain; ctx.Err() == nil; pause = min(2*pause, lastLookAgain) {
		for step, err := range alarms.Watch(ctx, f.log, *next) {
			if err != nil {
				operator.ErrorContext(ctx, "the alarms of the log can't be read; it is tried again", "from", *next, "err", err, "pause", pause)
				break
			}
			if *next = step.Next; step.Alarm != nil {
				tellAlarm(ctx, *step.Alarm, tel, operator)
			}
			pause = firstLookAgain
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// tellRest tells of what came after the last look and before the end: no later daemon does.
func (f alarmFollower) tellRest(ctx context.Context, next uint64, tel *telemetry.Telemetry, operator *slog.Logger) {
	for r, err := range f.log.Records(ctx, audit.Filter{FromSeq: next, Alarms: true}) {
		if err != nil {
			operator.ErrorContext(ctx, "the last alarms of the log can't be read", "from", next, "err", err)
			return
		}
		tellAlarm(ctx, r, tel, operator)
	}
}

func tellAlarm(ctx context.Context, r audit.Record, tel *telemetry.Telemetry, operator *slog.Logger) {
	if tel != nil {
		tel.Alarmed(string(r.Kind), max(1, r.Count))
	}
	operator.WarnContext(ctx, "an alarm is on record", "record", r.Seq, "kind", r.Kind, "outcome", r.Outcome,
		"run", r.Run, "sandbox", r.Sandbox, "about", aboutOf(r), "rule", r.Rule, "why", r.Reason)
}

// aboutOf is what a record is about; others wrote it.
func aboutOf(r audit.Record) string {
	if r.Package != "" {
		return r.Ecosystem + " " + r.Package + " " + r.InstalledVersion
	}
	return r.Detail["name"]
}

// watchAlarms implements webhook.AlarmSource.
func (f alarmFollower) watchAlarms(ctx context.Context, from uint64) iter.Seq2[alarms.Step, error] {
	return alarms.Watch(ctx, f.log, from)
}

func (f alarmFollower) endFollower() {
	if f.quiet != nil {
		f.quiet()
	}
}
