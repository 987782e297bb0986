package guest

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// clockError is how far the guest's kernel may be off the host's time of day
// before it is worth a line: a call takes some time, too.
const clockError = time.Minute

// clockSlack is how far it may be off before it is set.
const clockSlack = 2 * time.Second

// holdClock stops the clock of the commands' timeouts, or lets it go on.
func (a *Agent) holdClock(h *channel.Hold) error {
	if h == nil {
		return errors.New("a hold call needs its body")
	}
	a.paid.setStopped(h.Stopped)
	return nil
}

// resume is told after a thaw.
func (a *Agent) resume(r *channel.Resume) error {
	if r == nil {
		return errors.New("a resume call needs its body")
	}
	a.tellTime(r.Now)
	return reseed(r.Seed)
}

// tellTime sets the kernel's time of day, if the agent may: most kernels have set their own
// by now, and one that stood still with its machine has not.
func (a *Agent) tellTime(now int64) {
	off := time.Until(time.Unix(0, now))
	if now == 0 || off.Abs() < clockSlack {
		return
	}
	at := unix.NsecToTimespec(now)
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &at); err != nil && off.Abs() > clockError {
		a.log.Warn("the time of day is wrong, and can't be set", "off", off.Round(time.Second), "error", err)
	}
}
