package audit

import (
	"context"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
)

// clockTolerance is how far the clock may go back without a record, and how far the
// host's may be off a record's time without being written beside it: that much it is set
// by who keeps it right.
const clockTolerance = time.Second

// clockWatch is what the records have said of the clock.
type clockWatch struct {
	behind bool // it has gone back, and a record of that is owed or written
	jumped bool // the host's clock has jumped, likewise
}

// knownTime is the earlier of the two times.
func (t stampTime) knownTime() time.Time {
	if t.wall.IsZero() || t.time.Before(t.wall) {
		return t.time
	}
	return t.wall
}

// stampTime returns the time of the records that are written now. The order of times is that
// of the numbers; what the host's clock says stands beside it.
func (w *writer) stampTime(r clock.Reading) stampTime {
	at := stampTime{time: r.Now.UTC().Round(0)}
	if at.time.Before(w.last) {
		at.time = w.last
	}
	if wall := r.Wall.UTC().Round(0); wall.Sub(at.time).Abs() > clockTolerance {
		at.wall = wall
	}
	return at
}

// watchClock owes a record when the host's clock jumps, when that is over, and when the
// time goes back: of each once until it changes.
func (w *writer) watchClock(r clock.Reading) {
	if jumped := r.Jumped(); jumped != w.clock.jumped {
		w.clock.jumped = jumped
		_ = w.oweRecord(ofJump(r)) // a record of fixed text can be written as JSON
	}
	back := w.last.Sub(r.Now)
	if back <= 0 {
		w.clock.behind = false
	}
	if w.clock.behind || back <= clockTolerance {
		return
	}
	w.clock.behind = true
	_ = w.oweRecord(Record{
		Kind: KindLog, Outcome: Failed,
		Reason: "The clock went back. Until it has caught up, records have the time of the one before, and what the clock says beside it.",
		Detail: map[string]string{"event": "clock_back", "clock": clockText(r.Now), "seconds": inSeconds(back)},
	})
}

// ofJump is the record of a jump, or of its end.
func ofJump(r clock.Reading) Record {
	if !r.Jumped() {
		return Record{
			Kind: KindLog, Outcome: Finished, Reason: "The host's clock is believed again.",
			Detail: map[string]string{"event": "clock_right", "clock": clockText(r.Wall)},
		}
	}
	return Record{
		Kind: KindLog, Outcome: Alarm,
		Reason: "The clock has jumped: " + r.Why() + ". What depends on an age waits for a person, and what has ended by either time has ended, until the clock is back or somebody says that it is right (cofferdam clock accept).",
		Detail: map[string]string{"event": "clock_jump", "clock": clockText(r.Wall), "seconds": inSeconds(r.Jump())},
	}
}

func clockText(at time.Time) string { return at.UTC().Round(0).Format(time.RFC3339Nano) }

func inSeconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// NoteClock records a jump of the clock, or its end, if no record that came by has done
// that. A caller that lets time pass without records calls it now and then.
func (l *FileLog) NoteClock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.between(func() error {
		l.writer.watchClock(l.options.Clock.Read())
		if l.writer.owed != nil {
			l.commit(nil)
		}
		return nil
	})
}

// LastTime is when the last record was made, as far as that is certain: the earlier of
// its time and of what the host's clock said. Zero if that is not here any more.
func (l *FileLog) LastTime() (last time.Time, err error) {
	err = l.between(func() error {
		last = l.writer.known
		return nil
	})
	return last, err
}
