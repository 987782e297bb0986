package watched

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

// observer tells telemetry what the manager tells its observer.
type observer struct{ tel *telemetry.Telemetry }

// Observer counts and traces what is done with sandboxes.
func Observer(tel *telemetry.Telemetry) sandbox.Observer { return observer{tel} }

// Begin implements sandbox.Observer.
func (o observer) Begin(ctx context.Context, op sandbox.Operation) (context.Context, func(sandbox.Operation, error)) {
	ctx, done := o.tel.Operation(ctx, string(op.Verb))
	return ctx, func(op sandbox.Operation, err error) {
		if op.Verb == sandbox.VerbCreate && err == nil {
			o.tel.Begun(ctx, op.Sandbox) // until it has a command
		}
		done(telemetry.Operated{Sandbox: op.Sandbox, Run: op.Run, Command: op.Command}, err)
	}
}

// journal is a journal whose changes are timed.
type journal struct {
	sandbox.Journal
	tel *telemetry.Telemetry
}

// Journal times the changes of sandboxes' states on their way to the disk.
func Journal(j sandbox.Journal, tel *telemetry.Telemetry) sandbox.Journal { return journal{j, tel} }

// Move implements sandbox.Journal.
func (j journal) Move(ctx context.Context, e sandbox.Entry, ev sandbox.Event) (sandbox.Event, error) {
	began := time.Now()
	ev, err := j.Journal.Move(ctx, e, ev)
	j.tel.Journaled(ctx, began, err)
	if err == nil {
		j.tel.Moved(string(ev.To))
	}
	return ev, err
}

// Put implements sandbox.Journal.
func (j journal) Put(ctx context.Context, e sandbox.Entry) error {
	began := time.Now()
	err := j.Journal.Put(ctx, e)
	j.tel.Journaled(ctx, began, err)
	return err
}
