package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Record is what is counted of a record of the audit log.
type Record struct {
	Sandbox, Run  string // "": it is about none
	Kind, Outcome string // each one of a few words
}

// Appended is told that the log was asked to take a record.
func (t *Telemetry) Appended(ctx context.Context, began time.Time, err error) {
	switch {
	case err == nil:
		t.metrics.appending.Observe(secondsSince(began))
	case ctx.Err() == nil:
		t.metrics.appendFailures.Inc()
	}
}

// Recorded is told of a durable record.
func (t *Telemetry) Recorded(r Record) {
	t.runs.learnRun(r.Sandbox, r.Run)
	t.metrics.records.WithLabelValues(r.Kind, r.Outcome).Inc()
}

// Alarmed is told of an alarm in the log, which stands for count of them.
func (t *Telemetry) Alarmed(kind string, count int) {
	t.metrics.alarms.WithLabelValues(kind).Add(float64(count))
}

// Decided is told of a decision about a package that is on record.
func (t *Telemetry) Decided(ecosystem, outcome string) {
	t.metrics.decisions.WithLabelValues(ecosystemOf(ecosystem), outcome).Inc()
}

// Begun is told, within what begins it, what a sandbox's decisions come from next: its
// creation, or a command.
func (t *Telemetry) Begun(ctx context.Context, sandbox string) { t.newest.rememberSpan(ctx, sandbox) }

// Ended is told that a sandbox has ended.
func (t *Telemetry) Ended(sandbox string) { t.newest.forgetSandbox(sandbox) }

// Exited is told of a command's end; code is nil if it is not known.
func (t *Telemetry) Exited(code *int) {
	result := "failed"
	switch {
	case code == nil:
		result = "unknown"
	case *code == 0:
		result = "ok"
	}
	t.metrics.commands.WithLabelValues(result).Inc()
}

// ecosystemOf is an ecosystem as a label: one of those that there are.
func ecosystemOf(name string) string {
	if _, err := pkgref.ParseEcosystem(name); err != nil {
		return "other"
	}
	return name
}

// Holding is told that a request waits for a person, and answered, once, of what came of
// it: one of a few words. Its span is a child of the one in ctx.
func (t *Telemetry) Holding(ctx context.Context, approval string) (_ context.Context, answered func(answer string)) {
	began := time.Now()
	t.metrics.holding.Inc()
	ctx, span := t.tracer.Start(ctx, "hold")
	span.SetAttributes(keyApproval.String(approval))
	return ctx, func(answer string) {
		t.metrics.holding.Dec()
		t.metrics.held.WithLabelValues(answer).Observe(secondsSince(began))
		span.SetAttributes(keyAnswer.String(answer))
		span.End()
	}
}

// Journaled is told that the journal of sandboxes was asked to take an entry.
func (t *Telemetry) Journaled(ctx context.Context, began time.Time, err error) {
	switch {
	case err == nil:
		t.metrics.journaling.Observe(secondsSince(began))
	case ctx.Err() == nil:
		t.metrics.journalFailures.Inc()
	}
}

// Moved is told of the state that a sandbox came into.
func (t *Telemetry) Moved(state string) { t.metrics.moves.WithLabelValues(state).Inc() }

// Operated is what is known of an operation on a sandbox at its end.
type Operated struct {
	Sandbox, Run, Command string // "": there is none
}

// Operation is told that something is done with a sandbox, and done, once, how it ended.
func (t *Telemetry) Operation(ctx context.Context, verb string) (_ context.Context, done func(Operated, error)) {
	began := time.Now()
	ctx, span := t.tracer.Start(ctx, "sandbox "+verb)
	return ctx, func(o Operated, err error) {
		t.metrics.operations.WithLabelValues(verb, categoryOf(err)).Inc()
		t.metrics.operating.WithLabelValues(verb).Observe(secondsSince(began))
		setTexts(span, map[attribute.Key]string{keySandbox: o.Sandbox, keyRun: o.Run, keyCommand: o.Command})
		endSpan(span, err)
	}
}
