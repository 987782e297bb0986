package keeper

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// The lengths to which a guest's or a client's words are kept.
const (
	maxErrorText = 1 << 10
	maxArgvKept  = 8 << 10 // of a command's argv in Command; the guest gets all of it
	maxUserKept  = 64
)

// endedCode is the exit code of a command whose sandbox is gone.
const endedCode = 137

// keptCommand is an exec: the guest's stream, and what came out of it.
type keptCommand struct {
	id       string
	argv     []string
	user     string
	started  time.Time
	timeout  time.Duration // 0: none
	adopted  bool          // its timeout, if it has one, is not known here
	capBytes int64         // per stream; 0: none
	terminal bool
	out      *ring
	answered chan struct{} // closed when the guest has said yes or no to it
	began    chan struct{} // closed when pid is known, or will not be
	done     chan struct{} // closed when exit is set

	mu     sync.Mutex    // guards what follows
	stream *channel.Conn // nil until the guest has said yes
	kept   *keptKill     // a kill that came before that; nil: none did
	pid    int           // the guest's claim
	ended  time.Time
	exit   *channel.Exit

	sending chan struct{} // a slot for the one Send that is under way

	// Owned by relayOutput.
	stdout, stderr int64 // bytes that the guest sent
	truncated      bool
	spoken         bool // began is closed
}

func newKeptCommand(exec *channel.Exec, o ExecOptions, output *outputShare) *keptCommand {
	c := &keptCommand{
		id: exec.ID, argv: clipArgv(exec.Argv), user: text.Shorten(exec.User, maxUserKept), started: time.Now(), timeout: time.Duration(exec.Timeout) * time.Millisecond,
		capBytes: max(o.CapBytes, 0), terminal: exec.PTY != nil, out: newRing(o.RingBytes, output),
		answered: make(chan struct{}), began: make(chan struct{}), done: make(chan struct{}), sending: make(chan struct{}, 1),
	}
	if o.AwaitReader {
		c.out.holdOutput()
	}
	return c
}

// clipArgv keeps as much of argv as a listing needs.
func clipArgv(argv []string) []string {
	var kept []string
	left := maxArgvKept
	for _, a := range argv {
		if left <= 0 {
			return append(kept, "...")
		}
		kept = append(kept, text.Shorten(a, left))
		left -= len(a) + 1
	}
	return kept
}

// relayOutput takes what the guest sends until the command has ended. gone is closed
// when the sandbox's channel is, and why tells of that.
func (c *keptCommand) relayOutput(stream *channel.Conn, gone <-chan struct{}, why func() string) {
	released := make(chan struct{})
	safego.Go(func() { // a sandbox that is gone waits for no reader
		timer := time.NewTimer(ReaderTimeout)
		defer timer.Stop()
		for {
			select {
			case <-gone:
				c.out.loosen()
				return
			case <-timer.C:
				c.out.releaseOutput()
			case <-released:
				return
			}
		}
	})
	exit := c.readGuest(stream, gone, why)
	close(released)
	exit.StdoutBytes, exit.StderrBytes, exit.Truncated = c.stdout, c.stderr, c.truncated
	c.out.closeRing()
	c.noteBegun(0)
	c.mu.Lock()
	c.exit, c.ended = &exit, time.Now()
	c.mu.Unlock()
	close(c.done)
	_ = stream.Close()
}

func (c *keptCommand) readGuest(stream *channel.Conn, gone <-chan struct{}, why func() string) channel.Exit {
	for {
		kind, payload, err := stream.ReadFrame()
		if err != nil {
			return lostExit(err, closed(gone) || closed(stream.Over()) && !errors.Is(err, channel.ErrReset), why)
		}
		switch kind {
		case channel.FrameStdout:
			c.noteBegun(0)
			c.keepOutput(kind, payload, &c.stdout)
		case channel.FrameStderr:
			c.noteBegun(0)
			c.keepOutput(kind, payload, &c.stderr)
		case channel.FrameStarted:
			var started channel.Started
			if err := channel.DecodeJSON(kind, payload, &started); err != nil {
				return lostExit(err, closed(gone), why)
			}
			c.noteBegun(max(started.PID, 0))
		case channel.FrameExit:
			var exit channel.Exit
			if err := channel.DecodeJSON(kind, payload, &exit); err != nil {
				return lostExit(err, closed(gone), why)
			}
			return c.believe(exit)
		default:
			return lostExit(&channel.FrameError{Type: kind, Length: uint32(len(payload)), Problem: "a command does not send this type"}, closed(gone), why)
		}
	}
}

// noteBegun notes the first word of the guest: the pid, or 0 if it is another.
func (c *keptCommand) noteBegun(pid int) {
	if c.spoken {
		return
	}
	c.spoken = true
	c.mu.Lock()
	c.pid = pid
	c.mu.Unlock()
	close(c.began)
}

// keepOutput counts output and keeps what is within the cap.
func (c *keptCommand) keepOutput(kind channel.FrameType, p []byte, count *int64) {
	before := *count
	*count += int64(len(p))
	if c.capBytes > 0 && *count > c.capBytes {
		c.truncated = true
		p = p[:max(c.capBytes-before, 0)]
	}
	c.out.append(kind, p)
}

// lostExit is the exit of a command that sent none. Its stream ends a moment before the sandbox's
// channel is closed for all, or after: gone tells of either.
func lostExit(err error, gone bool, why func() string) channel.Exit {
	if gone {
		return channel.Exit{Code: endedCode, Error: why()}
	}
	return channel.Exit{Code: endedCode, Error: "the sandbox's agent gave no exit status: " + text.Shorten(err.Error(), maxErrorText)}
}

// closed tells whether a channel is; one that is nil is not.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// tidyLine makes a guest's words one short line without control characters.
func tidyLine(s string) string {
	return text.Shorten(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text.Shorten(s, 4*maxErrorText)), maxErrorText)
}

// passInput passes a client's frame to the guest, waiting for as long as the guest
// does not take it. False when the command takes nothing any more.
func (c *keptCommand) passInput(kind channel.FrameType, payload []byte) bool {
	c.mu.Lock()
	stream := c.stream
	c.mu.Unlock()
	if stream == nil || !c.running() {
		return false
	}
	return stream.WriteFrame(kind, payload) == nil
}

// sendInput sends input for a client that has no attachment. A guest that does not take it holds up
// the next Send to the same command, and one that was given up may still arrive.
func (c *keptCommand) sendInput(ctx context.Context, kind channel.FrameType, payload []byte) error {
	select {
	case c.sending <- struct{}{}:
	case <-c.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !c.running() {
		return c.endedError()
	}
	payload = bytes.Clone(payload)
	taken := make(chan bool, 1)
	safego.Go(func() {
		ok := false
		defer func() {
			<-c.sending
			taken <- ok
		}()
		ok = c.passInput(kind, payload)
	})
	// A command that ends of what it was sent has taken it; one that ended without
	// loses its stream, and with that the write fails.
	select {
	case ok := <-taken:
		if !ok {
			return fault.New(fault.ErrConflict, "the command %s takes nothing: it has ended, or has not started yet", c.id)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *keptCommand) endedError() error {
	return fault.New(fault.ErrConflict, "the command %s has ended", c.id)
}

// awaitAnswer waits for the guest's yes to a command that is just being asked for. One that
// has ended, or that the guest refused, is a fault.ErrConflict.
func (c *keptCommand) awaitAnswer(ctx context.Context) error {
	select {
	case <-c.answered:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !c.hasStream() || !c.running() {
		return c.endedError()
	}
	return nil
}

// hasStream tells whether the guest has said yes to the command.
func (c *keptCommand) hasStream() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stream != nil
}

// awaitEnd waits until the guest has told the command's end.
func (c *keptCommand) awaitEnd(ctx context.Context) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *keptCommand) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

func (c *keptCommand) viewCommand() Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Command{ID: c.id, Argv: c.argv, PID: c.pid, Started: c.started, Ended: c.ended, Exit: c.exit, Offset: c.out.endOffset(), Terminal: c.terminal, TimeoutMS: c.timeout.Milliseconds()}
}

// lastCode is the highest exit code that a process can have.
const lastCode = 255

// believe makes of what a guest says of a command's end what can be: a code of a process,
// a signal that there is, a short line, and a timeout only of a command that has one
// which can be over by now.
func (c *keptCommand) believe(said channel.Exit) channel.Exit {
	exit := channel.Exit{Code: said.Code, Error: tidyLine(said.Error), Claimed: true}
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
func (c *keptCommand) overdue(now time.Time) bool {
	slack := c.timeout/100 + 10*time.Millisecond
	return c.timeout > 0 && now.Sub(c.started) >= c.timeout-slack
}
