package telemetry

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// countedLog is an audit log whose records are counted.
type countedLog struct {
	audit.Log
	t *Telemetry
}

// Log counts the records that are appended to a log, and follows the commands
// that they tell of.
func (t *Telemetry) Log(log audit.Log) audit.Log { return countedLog{log, t} }

// Append implements audit.Log.
func (l countedLog) Append(ctx context.Context, r audit.Record) (audit.Record, error) {
	began := time.Now()
	r, err := l.Log.Append(ctx, r)
	if err != nil {
		if ctx.Err() == nil {
			l.t.metrics.appendFailures.Inc()
		}
		return r, err
	}
	l.t.metrics.appending.Observe(since(began))
	l.t.recorded(ctx, r)
	return r, nil
}

// recorded is told of a durable record. A command's is written before the
// command starts, so what the command asks for finds it.
func (t *Telemetry) recorded(ctx context.Context, r audit.Record) {
	t.runs.learn(r.Sandbox, r.Run)
	t.metrics.records.WithLabelValues(string(r.Kind), string(r.Outcome)).Inc()
	switch r.Kind {
	case audit.KindPackage:
		t.metrics.decisions.WithLabelValues(ecosystemOf(r.Ecosystem), string(r.Outcome)).Inc()
	case audit.KindCommand:
		switch r.Outcome { //nolint:exhaustive // The others neither begin nor end a command.
		case audit.Started:
			t.newest.begun(ctx, r.Sandbox)
		case audit.Finished:
			t.metrics.commands.WithLabelValues(exitOf(r)).Inc()
		}
	case audit.KindSandbox:
		if r.Outcome == audit.Finished {
			t.newest.forget(r.Sandbox)
		}
	case audit.KindNetwork, audit.KindDaemon, audit.KindBuild, audit.KindApproval, audit.KindLog:
	}
}

func exitOf(r audit.Record) string {
	switch {
	case r.Exit == nil:
		return "unknown"
	case *r.Exit == 0:
		return "ok"
	default:
		return "failed"
	}
}

// ecosystemOf is an ecosystem as a label: one of those that there are.
func ecosystemOf(name string) string {
	if _, err := pkgref.ParseEcosystem(name); err != nil {
		return "other"
	}
	return name
}
