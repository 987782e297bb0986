package audit_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// breaking is a clock that panics while it is true.
type breaking struct{ atomic.Bool }

func (b *breaking) Read() clock.Reading {
	if b.Load() {
		panic("no time")
	}
	now := time.Now()
	return clock.Reading{Now: now, Wall: now}
}

// TestAWriterThatPanics: a fault of ours in the writer refuses what was to be recorded,
// then and from then on, and keeps nobody waiting; what is durable is there for the
// next log.
func TestAWriterThatPanics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var broken breaking
	log, err := audit.Open(dir, audit.Options{Clock: &broken})
	if err != nil {
		t.Fatal(err)
	}
	record := audit.Record{Kind: audit.KindDaemon, Outcome: audit.Started, Reason: "A test."}
	if _, err := log.Append(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	next, _ := log.End()
	broken.Store(true)
	for range 3 {
		if _, err := log.Append(t.Context(), record); !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("a record is answered with %v", err)
		}
	}
	if err := log.Healthy(context.Background()); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("the log is said to be well: %v", err)
	}
	broken.Store(false)
	_ = log.Close()
	log, err = audit.Open(dir, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // nothing was written
	if again, _ := log.End(); again < next {
		t.Errorf("the next log has %d records, and %d were durable", again, next)
	}
	if _, err := log.Append(t.Context(), record); err != nil {
		t.Error(err)
	}
}
