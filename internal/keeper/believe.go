package keeper

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

// lastCode is the highest exit code that a process can have.
const lastCode = 255

// believe makes of what a guest says of a command's end what can be: a code of a process,
// a signal that there is, a short line, and a timeout only of a command that has one
// which can be over by now.
func (c *command) believe(said channel.Exit) channel.Exit {
	exit := channel.Exit{Code: said.Code, Error: tidy(said.Error), Claimed: true}
	if said.Code < 0 || said.Code > lastCode {
		exit.Code = lastCode
	}
	if unix.SignalNum("SIG"+said.Signal) != 0 {
		exit.Signal = said.Signal
	}
	switch {
	case !said.TimedOut:
	case c.overdue(time.Now()):
		exit.TimedOut = true
	case c.adopted && exit.Error == "":
		exit.Error = "its time limit was over"
	}
	return exit
}

// overdue reports whether a command has a timeout that may be over. The guest's clock
// stands still at times, so it may be over later, and hardly earlier.
func (c *command) overdue(now time.Time) bool {
	slack := c.timeout/100 + 10*time.Millisecond
	return c.timeout > 0 && now.Sub(c.started) >= c.timeout-slack
}
