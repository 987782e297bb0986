package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// sandbox is a channel and the processes behind it.
type sandbox struct {
	id       string
	started  time.Time
	reaper   *reaper
	log      *slog.Logger
	session  *channel.Session // set before the sandbox can be found
	wire     *channel.Wire    // under the session
	calls    chan struct{}    // one slot for each stream that the keeper has open, but for dials and freezes
	dials    chan struct{}    // one for each stream that connects to a port inside
	freezes  chan struct{}    // one for each by which the guest is told of a freeze or thaw
	controls chan struct{}    // one for each control call that is under way
	follows  chan struct{}    // one for each client that follows a command
	inputs   chan struct{}    // one for each client that waits for its input to be taken
	settled  chan struct{}    // closed when the launch has succeeded or failed
	met      atomic.Bool      // the guest has answered once
	moving   chan struct{}    // a slot for the freeze or thaw that is under way
	began    logMark          // what its log told before the launch
	output   *outputShare     // of the memory that all sandboxes' output takes; nil: it is not counted
	refusals *refusals        // of its guest's streams; its id's

	mu        sync.Mutex // guards what follows
	meta      json.RawMessage
	killed    bool     // what is started from now on is to be killed
	starter   *child   // the last program that was run for the sandbox; nil if attached
	born      birth    // of the last launch or thaw
	tracked   []*child // in the order in which they were named
	phase     phase
	inPlace   bool           // frozen with its processes, which may still end
	rebuilt   bool           // thawed once: that nothing is tracked does not last
	parted    bool           // frozen with Fresh: its session is over
	coming    *sandbox       // is being started in its place; nil: none is
	heir      *sandbox       // has taken its place; nil: none has
	changed   chan struct{}  // closed, and made anew, when the phase or what is tracked changes
	commands  []*keptCommand // oldest first; those that are starting included
	keepEnded int
	forgotten bool // it is over, and has no commands any more
}

// Limits of one sandbox.
const (
	maxCalls   = 128       // streams to the guest at once: commands that run, and calls
	maxDials   = 96        // and besides these connections to ports
	maxFreezes = 8         // and these words of the daemon's, of freezes and thaws
	maxMeta    = 128 << 10 // bytes
	// Each client of these has a connection, buffers and goroutines here: 42 KiB.
	maxFollows = 256 // clients that follow commands; besides the daemon, which follows each one to its end
	maxInputs  = 256 // clients whose input waits for a command to take it
)

// isAlive tells whether anything of the sandbox may still run. Needs mu.
func (s *sandbox) isAlive() bool {
	if !s.launched() || slices.ContainsFunc(s.tracked, (*child).isAlive) {
		return true
	}
	if s.bodiless() {
		return !s.killed
	}
	if len(s.tracked) > 0 {
		return false
	}
	select { // nobody has named its processes yet: the channel is what tells
	case <-s.session.Done():
		return false
	default:
		return true
	}
}

// bodiless tells whether it is no end that nothing of the sandbox runs. Needs mu.
func (s *sandbox) bodiless() bool { return s.phase != running && !s.inPlace }

func (s *sandbox) launched() bool {
	select {
	case <-s.settled:
		return true
	default:
		return false
	}
}

// viewSandbox returns the sandbox without its commands, and those apart.
func (s *sandbox) viewSandbox() (Sandbox, []Command) {
	s.mu.Lock()
	v := Sandbox{ID: s.id, Meta: s.meta, Pids: []int{}, Alive: s.isAlive(), Started: s.started, Moving: s.phase == freezing || s.phase == thawing}
	v.Frozen = v.Alive && s.phase == frozen
	for i, p := range s.tracked {
		if p.isAlive() {
			v.Pids, v.Processes = append(v.Pids, p.id.Pid), append(v.Processes, p.id)
		} else if i == 0 && (!s.bodiless() || s.killed) {
			v.Exit = &p.exit
		}
	}
	commands := slices.Clone(s.commands)
	s.mu.Unlock()
	views := make([]Command, 0, len(commands))
	for _, c := range commands {
		views = append(views, c.viewCommand())
	}
	return v, views
}

func (s *sandbox) setMeta(meta json.RawMessage) error {
	meta, err := checkMeta(meta)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meta = meta
	return nil
}

// checkMeta returns its own copy; none is null.
func checkMeta(meta json.RawMessage) (json.RawMessage, error) {
	if len(meta) == 0 {
		return json.RawMessage("null"), nil
	}
	if len(meta) > maxMeta || !json.Valid(meta) {
		return nil, fault.Invalid("a sandbox's meta must be JSON of at most %d bytes, and this is %d", maxMeta, len(meta))
	}
	return bytes.Clone(meta), nil
}

// trackProcesses takes processes, or the numbers of who has no more of them.
func (s *sandbox) trackProcesses(processes []process.ID, pids []int) error {
	if n := len(processes) + len(pids); n == 0 || n > 64 {
		return fault.Invalid("track takes 1 to 64 processes, not %d", n)
	}
	s.mu.Lock()
	born := s.born
	s.mu.Unlock()
	found := make([]*child, 0, len(processes)+len(pids))
	for _, id := range processes {
		p, err := s.reaper.adoptChild(s.id, born, id, false)
		if err != nil {
			return err
		}
		found = append(found, p)
	}
	for _, pid := range pids {
		p, err := s.reaper.adoptChild(s.id, born, process.ID{Pid: pid}, true)
		if err != nil {
			return err
		}
		found = append(found, p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range found {
		if !slices.ContainsFunc(s.tracked, p.isSame) {
			s.tracked = append(s.tracked, p)
		}
	}
	s.wakeWaiters()
	safego.Go(func() { s.closeAfter(found) })
	return nil
}

// closeAfter ends the channel when nothing is left behind it, though somebody
// else may still hold its other end.
func (s *sandbox) closeAfter(processes []*child) {
	for _, p := range processes {
		<-p.done
	}
	s.mu.Lock()
	over, asked := !s.isAlive(), s.killed
	s.mu.Unlock()
	if !over {
		return
	}
	if !asked {
		for _, p := range processes {
			s.log.Warn("a sandbox's process ended by itself", slog.String("sandbox", s.id), slog.Int("pid", p.id.Pid), slog.Int("code", p.exit.Code), slog.Int("signal", p.exit.Signal))
		}
	}
	_ = s.session.Close()
}

// signalProcesses goes to every tracked process. One that kills ends the sandbox, even if a freeze,
// which kills them as well, comes first.
func (s *sandbox) signalProcesses(sig int) error {
	if sig < 1 || sig > 64 {
		return fault.Invalid("%d is not a signal number", sig)
	}
	s.mu.Lock()
	tracked := slices.Clone(s.tracked)
	lives := slices.ContainsFunc(tracked, (*child).isAlive)
	s.killed = s.killed || lives && sig == int(syscall.SIGKILL)
	s.mu.Unlock()
	if !lives {
		return fault.New(fault.ErrConflict, "sandbox %s has no tracked process that runs", s.id)
	}
	var errs []error
	for _, p := range tracked {
		errs = append(errs, s.reaper.signalChild(p, syscall.Signal(sig), false))
	}
	return errors.Join(errs...)
}

// killProcesses ends every process that is known, and the channel: an agent whose
// processes nobody named loses its wire. It returns when all are reaped.
func (s *sandbox) killProcesses(ctx context.Context) error {
	s.mu.Lock()
	s.killed = true
	starter, tracked, coming, heir := s.starter, slices.Clone(s.tracked), s.coming, s.heir
	s.mu.Unlock()
	if heir != nil {
		return heir.killProcesses(ctx)
	}
	if coming != nil {
		coming.doomStarts()
	}
	var errs []error
	if starter != nil {
		errs = append(errs, s.reaper.signalChild(starter, syscall.SIGKILL, true))
		tracked = append(tracked, starter)
	}
	for _, p := range tracked {
		errs = append(errs, s.reaper.signalChild(p, syscall.SIGKILL, false))
	}
	_ = s.session.Close()
	if err := awaitEnd(ctx, s.id, tracked); err != nil {
		return err
	}
	select {
	case <-s.settled:
	case <-ctx.Done():
		return ctx.Err()
	}
	end, err := s.beginMove(ctx) // a freeze or thaw that was under way is over then
	if err != nil {
		return err
	}
	end(running)
	return errors.Join(errs...)
}

// awaitEnd waits until processes are reaped.
func awaitEnd(ctx context.Context, id string, processes []*child) error {
	for _, p := range processes {
		select {
		case <-p.done:
		case <-ctx.Done():
			return fault.Wrap(fault.ErrUnavailable, ctx.Err(), "process %d of sandbox %s was killed and is not gone yet", p.id.Pid, id)
		}
	}
	return nil
}

// waitExit returns how the first tracked process ended; not while, or because, the
// sandbox is frozen. After a thaw the first of the new ones counts.
func (s *sandbox) waitExit(ctx context.Context) (*ProcessExit, error) {
	for {
		if heir := s.successor(); heir != nil {
			return heir.waitExit(ctx)
		}
		exit, ended, changed, err := s.ending()
		if exit != nil || err != nil {
			return exit, err
		}
		select {
		case <-ended:
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ending is the sandbox's exit, or what to wait for: the end of its first
// process, or a change. A frozen sandbox has no first process.
func (s *sandbox) ending() (exit *ProcessExit, ended, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heir != nil { // since the last look
		changed := make(chan struct{})
		close(changed)
		return nil, nil, changed, nil
	}
	if s.bodiless() {
		return nil, nil, s.changed, nil
	}
	if len(s.tracked) > 0 {
		first := s.tracked[0]
		if !first.isAlive() {
			return &first.exit, nil, nil, nil
		}
		return nil, first.done, s.changed, nil
	}
	switch {
	case s.killed && s.rebuilt:
		return &ProcessExit{Code: endedCode, Signal: int(syscall.SIGKILL)}, nil, nil, nil
	case s.rebuilt:
		return nil, nil, s.changed, nil
	default:
		return nil, nil, nil, fault.New(fault.ErrConflict, "sandbox %s has no tracked process to wait for; track its processes first", s.id)
	}
}

// reserve makes a command known before the guest hears of it, so that its id
// is taken once.
func (s *sandbox) reserve(c *keptCommand) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.commands, func(d *keptCommand) bool { return d.id == c.id }) {
		return fault.New(fault.ErrConflict, "sandbox %s has a command %s already", s.id, c.id)
	}
	if s.forgotten {
		return fault.New(fault.ErrNotFound, "there is no sandbox %s any more", s.id)
	}
	s.commands = append(s.commands, c)
	return nil
}

// dropCommand forgets a command that the guest did not start.
func (s *sandbox) dropCommand(c *keptCommand) {
	close(c.answered)
	c.out.retire()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = slices.DeleteFunc(s.commands, func(d *keptCommand) bool { return d == c })
}

func (s *sandbox) commandByID(id string) (*keptCommand, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.commands {
		if c.id == id {
			return c, nil
		}
	}
	return nil, fault.New(fault.ErrNotFound, "sandbox %s has no command %s", s.id, text.Shorten(id, 64))
}
