package daemon

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
)

// keepEvery is how often what time it is is kept: after a reboot nothing else but the last
// record tells the next daemon that the clock is behind.
const keepEvery = time.Hour

// timekeeper tells of the clock: the operator, the log and whoever asks.
type timekeeper struct {
	clock    *clock.Clock
	log      *audit.FileLog
	operator *slog.Logger
	accepted func() // called when somebody has accepted the host's clock

	// The state that was made of the clock; the daemon's loop alone has it.
	jumped bool
	kept   time.Time
}

// startWatch compares the clock with the last record, and records a jump before anything
// else is.
func (k *timekeeper) startWatch(ctx context.Context) error {
	last, err := k.log.LastTime()
	if err == nil && !last.IsZero() {
		err = k.clock.Known(last)
	}
	if err == nil {
		err = k.log.NoteClock(ctx)
	}
	k.watchClock(ctx)
	return err
}

// watchClock tells the operator and the log of a jump of the host's clock, and of its end.
func (k *timekeeper) watchClock(ctx context.Context) {
	r := k.clock.Read()
	changed := r.Jumped() != k.jumped
	if changed {
		k.jumped = r.Jumped()
		if r.Jumped() {
			k.operator.ErrorContext(ctx, "the host's clock has jumped; what depends on an age waits for a person until it is back or is accepted (cofferdam clock)",
				"by", r.Jump().Round(time.Second).String(), "clock", r.Wall, "time", r.Now)
		} else {
			k.operator.InfoContext(ctx, "the host's clock is believed again")
		}
		if err := k.log.NoteClock(ctx); err != nil {
			k.operator.ErrorContext(ctx, "what the host's clock did could not be recorded", "err", err)
		}
	}
	if changed || time.Since(k.kept) > keepEvery {
		k.kept = time.Now()
		k.keepClock()
	}
}

func (k *timekeeper) keepClock() {
	if k.clock == nil {
		return
	}
	if err := k.clock.Keep(); err != nil {
		k.operator.Error("what time it is could not be kept", "err", err)
	}
}

// Time tells what time it is, and what the host's clock says.
func (k *timekeeper) Time() clock.Reading { return k.clock.Read() }

// AcceptClock believes the host's clock, because somebody has said so, on record. The
// gateway is started anew with it.
func (k *timekeeper) AcceptClock(ctx context.Context, by string) (before clock.Reading, err error) {
	before = k.clock.Read()
	if !before.Jumped() {
		return before, nil
	}
	if _, err := k.log.Append(ctx, audit.Record{
		Kind: audit.KindLog, Outcome: audit.Finished, User: by, Reason: "Somebody says that the host's clock is right.",
		Detail: map[string]string{
			"event": "clock_accepted", "clock": before.Wall.UTC().Format(time.RFC3339Nano),
			"seconds": strconv.FormatInt(int64(before.Jump()/time.Second), 10),
		},
	}); err != nil {
		return before, err
	}
	if before, err = k.clock.Accept(); err != nil {
		return before, err
	}
	k.accepted()
	return before, k.log.NoteClock(ctx)
}

// renewGateway ends the running gateway, for one to start that knows what has changed.
func (g *gatewayProcess) renewGateway() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.restart != nil {
		g.restart()
	}
}
