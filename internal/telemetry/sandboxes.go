package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
)

// observer is Telemetry as the manager's sandbox.Observer.
type observer struct{ t *Telemetry }

var _ sandbox.Observer = observer{}

// Observer counts and traces what is done with sandboxes.
func (t *Telemetry) Observer() sandbox.Observer { return observer{t} }

// Begin implements sandbox.Observer.
func (o observer) Begin(ctx context.Context, op sandbox.Operation) (context.Context, func(sandbox.Operation, error)) {
	began := time.Now()
	ctx, span := o.t.tracer.Start(ctx, "sandbox "+string(op.Verb))
	return ctx, func(op sandbox.Operation, err error) {
		verb := string(op.Verb)
		o.t.metrics.operations.WithLabelValues(verb, categoryOf(err)).Inc()
		o.t.metrics.operating.WithLabelValues(verb).Observe(since(began))
		set(span, map[attribute.Key]string{keySandbox: op.Sandbox, keyRun: op.Run, keyCommand: op.Command})
		if op.Verb == sandbox.VerbCreate && err == nil {
			o.t.newest.begun(ctx, op.Sandbox) // until it has a command
		}
		end(span, err)
	}
}
