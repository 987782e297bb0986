package daemon

import (
	"context"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/clock"
)

// keepEvery is how often what time it is is kept: after a reboot nothing else but the last
// record tells the next daemon that the clock is behind.
const keepEvery = time.Hour

// clockState is what was made of the clock; the daemon's loop alone has it.
type clockState struct {
	jumped bool
	kept   time.Time
}

// startClock compares the clock with the last record, and records a jump before anything
// else is.
func (d *Daemon) startClock(ctx context.Context) error {
	last, err := d.log.LastTime()
	if err == nil && !last.IsZero() {
		err = d.clock.Known(last)
	}
	if err == nil {
		err = d.log.NoteClock(ctx)
	}
	d.watchClock(ctx)
	return err
}

// watchClock tells the operator and the log of a jump of the host's clock, and of its end.
func (d *Daemon) watchClock(ctx context.Context) {
	r := d.clock.Read()
	changed := r.Jumped() != d.askew.jumped
	if changed {
		d.askew.jumped = r.Jumped()
		if r.Jumped() {
			d.opts.Log.ErrorContext(ctx, "the host's clock has jumped; what depends on an age waits for a person until it is back or is accepted (cofferdam clock)",
				"by", r.Jump().Round(time.Second).String(), "clock", r.Wall, "time", r.Now)
		} else {
			d.opts.Log.InfoContext(ctx, "the host's clock is believed again")
		}
		if err := d.log.NoteClock(ctx); err != nil {
			d.opts.Log.ErrorContext(ctx, "what the host's clock did could not be recorded", "err", err)
		}
	}
	if changed || time.Since(d.askew.kept) > keepEvery {
		d.askew.kept = time.Now()
		d.keepClock()
	}
}

func (d *Daemon) keepClock() {
	if d.clock == nil {
		return
	}
	if err := d.clock.Keep(); err != nil {
		d.opts.Log.Error("what time it is could not be kept", "err", err)
	}
}

// Time tells what time it is, and what the host's clock says.
func (d *Daemon) Time() clock.Reading { return d.clock.Read() }

// AcceptClock believes the host's clock, because somebody has said so, on record. The
// gateway is started anew with it.
func (d *Daemon) AcceptClock(ctx context.Context, by string) (before clock.Reading, err error) {
	before = d.clock.Read()
	if !before.Jumped() {
		return before, nil
	}
	if _, err := d.log.Append(ctx, audit.Record{
		Kind: audit.KindLog, Outcome: audit.Finished, User: by, Reason: "Somebody says that the host's clock is right.",
		Detail: map[string]string{
			"event": "clock_accepted", "clock": before.Wall.UTC().Format(time.RFC3339Nano),
			"seconds": strconv.FormatInt(int64(before.Jump()/time.Second), 10),
		},
	}); err != nil {
		return before, err
	}
	if before, err = d.clock.Accept(); err != nil {
		return before, err
	}
	d.gateway.renew()
	return before, d.log.NoteClock(ctx)
}

// renew ends the running gateway, for one to start that knows what has changed.
func (g *gatewayProcess) renew() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.restart != nil {
		g.restart()
	}
}
