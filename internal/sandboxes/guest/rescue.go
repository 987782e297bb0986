package guest

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// How long a start may take before it is helped on, how often it is helped and for how long
// at a time, and when it is given up.
const (
	startTimeout = 200 * time.Millisecond
	startHelp    = 5 * time.Millisecond
	helpLimit    = time.Second
	startBound   = 30 * time.Second
)

// errHeldUp says why a child never became its program.
var errHeldUp = errors.New("other processes of the sandbox held it up before its first instruction")

// awaitChild waits until a child has become its program. One that is held up is helped on, and
// killed when that has been of no use for so long; nobody but its own start waits for it
// meanwhile.
func (r *reaper) awaitChild(id process.ID, told *os.File, clock *clock, bound time.Duration) error {
	until := clock.readTime() + bound
	for {
		err := awaitBegun(told, startTimeout)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if clock.readTime() > until {
			_ = id.Signal(unix.SIGKILL) // it may have begun meanwhile: its start has failed all the same
			return errHeldUp
		}
		if err := r.helpOn(id, told); !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
}

// helpOn has a child go on that has been stopped. Nothing runs meanwhile but the agent and
// what it starts: who stopped it once would again. It returns what began says.
func (r *reaper) helpOn(id process.ID, told *os.File) error {
	if !stopped(id) {
		return os.ErrDeadlineExceeded
	}
	r.mu.Lock() // nobody else stops or continues all
	defer r.mu.Unlock()
	holdStill(unix.SIGSTOP)
	defer holdStill(unix.SIGCONT)
	for end := time.Now().Add(helpLimit); ; {
		if stopped(id) {
			_ = id.Signal(unix.SIGCONT) // it may have begun meanwhile
		}
		if err := awaitBegun(told, startHelp); !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(end) {
			return err
		}
	}
}

// stopped tells whether a process is.
func stopped(id process.ID) bool {
	p, err := process.Read(id.Pid)
	return err == nil && p.ID == id && p.Stopped
}
