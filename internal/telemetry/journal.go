package telemetry

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
)

// timedJournal is a journal whose changes are timed.
type timedJournal struct {
	sandbox.Journal
	t *Telemetry
}

// Journal times the changes of sandboxes' states on their way to the disk.
func (t *Telemetry) Journal(j sandbox.Journal) sandbox.Journal { return timedJournal{j, t} }

// Move implements sandbox.Journal.
func (j timedJournal) Move(ctx context.Context, e sandbox.Entry, ev sandbox.Event) (sandbox.Event, error) {
	began := time.Now()
	ev, err := j.Journal.Move(ctx, e, ev)
	j.wrote(ctx, began, err)
	if err == nil {
		j.t.metrics.moves.WithLabelValues(string(ev.To)).Inc()
	}
	return ev, err
}

// Put implements sandbox.Journal.
func (j timedJournal) Put(ctx context.Context, e sandbox.Entry) error {
	began := time.Now()
	err := j.Journal.Put(ctx, e)
	j.wrote(ctx, began, err)
	return err
}

func (j timedJournal) wrote(ctx context.Context, began time.Time, err error) {
	switch {
	case err == nil:
		j.t.metrics.journaling.Observe(since(began))
	case ctx.Err() == nil:
		j.t.metrics.journalFailures.Inc()
	}
}
