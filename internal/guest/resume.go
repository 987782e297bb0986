package guest

import (
	"errors"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

// clockError is how far the guest's kernel may be off the host's time of day
// before it is worth a line: a call takes some time, too.
const clockError = time.Minute

// hold stops the clock of the commands' timeouts, or lets it go on.
func (a *Agent) hold(h *channel.Hold) error {
	if h == nil {
		return errors.New("a hold call needs its body")
	}
	a.paid.stop(h.Stopped)
	return nil
}

// resume is told after a thaw. The kernel has set its own time of day already;
// the agent has no right to.
func (a *Agent) resume(r *channel.Resume) error {
	if r == nil {
		return errors.New("a resume call needs its body")
	}
	if off := time.Until(time.Unix(0, r.Now)); off.Abs() > clockError {
		a.log.Warn("the time of day is wrong after a thaw", "off", off.Round(time.Second))
	}
	return reseed(r.Seed)
}
