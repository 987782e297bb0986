package guest

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/process"
)

// How long a start may take before it is helped on, and how often it is helped.
const (
	startTimeout = 200 * time.Millisecond
	startHelp    = 5 * time.Millisecond
)

// watchStart helps a start on that is held up: between its fork and its exec a
// child can be stopped by other processes of its user, and with it whoever waits
// for the reaper, a command's timeout among them. The function that it returns
// ends the watching, and returns when it has ended. Needs mu until then.
func (r *reaper) watchStart() (begun func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	late := time.AfterFunc(startTimeout, func() {
		defer close(ended)
		r.helpOn(over)
	})
	return func() {
		if !late.Stop() {
			close(over)
			<-ended
		}
	}
}

// helpOn waits until the start is over. Where it is what was stopped, nothing runs
// from then on but the agent and what it starts: who stopped it once would again.
func (r *reaper) helpOn(over <-chan struct{}) {
	tick := time.NewTicker(startHelp)
	defer tick.Stop()
	still := false
	for {
		stopped := r.stoppedStarts()
		if len(stopped) > 0 && !still {
			still = true
			holdStill(unix.SIGSTOP)
			defer holdStill(unix.SIGCONT)
		}
		for _, id := range stopped {
			_ = id.Signal(unix.SIGCONT) // it may have begun meanwhile
		}
		select {
		case <-over:
			return
		case <-tick.C:
		}
	}
}

// stoppedStarts are the stopped children of the agent that it has not told of:
// what is being started, and orphans that are as young. Needs mu.
func (r *reaper) stoppedStarts() []process.ID {
	table, err := process.Table()
	if err != nil {
		return nil
	}
	var found []process.ID
	for pid, p := range table {
		if known := r.waiting[pid]; p.Stopped && p.Parent == os.Getpid() && known.id != p.ID && p.Start >= r.newest {
			found = append(found, p.ID)
		}
	}
	return found
}
