package keeper

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Freeze asks for a sandbox to be stopped while its channel lives on: the
// session stays in memory, what is in flight on it stays in flight, commands
// go on as soon as it is thawed, and Wait does not return.
//
// With Steps, the sandbox's memory is written somewhere: the programs are run
// one after the other as the keeper's children, and when all have ended with 0
// its processes are killed. When one fails, Undo is run and the sandbox goes
// on. After the first step has ended the guest must not run any more. A kill of
// the sandbox ends the step that runs, and no other begins; Undo is run all the
// same, because what a step holds still may not be able to die before.
//
// Without Steps the processes are stopped where they are, and keep their memory.
//
// With Keep the sandbox goes on after the last step, instead of being killed:
// nothing that the host writes reaches the guest between the steps' begin and
// end, and the guest has read whole frames, so that a copy of it that a step
// makes can be launched with Reset.
type Freeze struct {
	ID   string `json:"id"`
	Keep bool   `json:"keep,omitempty"` // needs steps
	// Fresh: nothing is kept but what the steps write; commands and streams end, and
	// only a Launch with Fresh thaws it. It needs steps.
	Fresh bool       `json:"fresh,omitempty"` // FeatureFresh
	Steps [][]string `json:"steps,omitempty"` // programs by absolute path
	Undo  [][]string `json:"undo,omitempty"`
	Env   []string   `json:"env,omitempty"`
	Dir   string     `json:"dir,omitempty"`
	Log   string     `json:"log,omitempty"` // a file for the programs' output, appended
}

// The times that bound a freeze. Only then is it known that a guest does not read, or
// that a program hangs.
const (
	quietTimeout = 5 * time.Second
	stepTimeout  = 5 * time.Minute
	undoTimeout  = 30 * time.Second // of what lets a sandbox go on, for which a kill waits
)

// phase is where a sandbox is between running and frozen.
type phase int

const (
	running phase = iota
	freezing
	frozen
	thawing
)

// enterPhase changes the phase and wakes who waits for that. Needs s.mu.
func (s *sandbox) enterPhase(p phase) {
	s.phase = p
	s.wakeWaiters()
}

// wakeWaiters wakes who waits for a change. Needs s.mu.
func (s *sandbox) wakeWaiters() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// beginMove makes sure that there is one freeze or thaw at a time. The function that
// it returns ends it, in a phase.
func (s *sandbox) beginMove(ctx context.Context) (end func(phase), err error) {
	select {
	case s.moving <- struct{}{}:
	case <-ctx.Done():
		return nil, fault.Wrap(fault.ErrUnavailable, ctx.Err(), "sandbox %s is being frozen or thawed", s.id)
	}
	return func(p phase) {
		s.mu.Lock()
		if s.killed {
			p = running // what was to be kept is gone
		}
		s.enterPhase(p)
		over := !s.isAlive()
		s.mu.Unlock()
		<-s.moving
		if over {
			_ = s.session.Close()
		}
	}, nil
}

// phaseNow is the phase, and whether anything of the sandbox may still run.
func (s *sandbox) phaseNow() (phase, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase, s.isAlive()
}

// isOver tells whether the sandbox has ended, or does: it is being killed, nothing of
// it runs, or its guest has closed the channel.
func (s *sandbox) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.session.Done():
		return true
	default:
		return s.killed || !s.isAlive()
	}
}

// embodied tells whether a process of the sandbox is known to run.
func (s *sandbox) embodied() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.launched() && slices.ContainsFunc(s.tracked, (*child).isAlive)
}

func (s *sandbox) turnTo(p phase, inPlace bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inPlace = inPlace
	s.enterPhase(p)
}

// freeze is not bound to its client: one that leaves finds the sandbox frozen,
// or running. Freezing what is frozen does nothing.
func (s *Server) freeze(ctx context.Context, box *sandbox, f *Freeze) error {
	if err := checkFreeze(f); err != nil {
		return err
	}
	end, err := box.beginMove(ctx)
	if err != nil {
		return err
	}
	was, alive := box.phaseNow()
	if was == frozen || !alive {
		end(was)
		switch {
		case !alive:
			return fault.New(fault.ErrConflict, "sandbox %s has ended", box.id)
		case f.Keep:
			return fault.New(fault.ErrConflict, "sandbox %s is frozen; thaw it first", box.id)
		default:
			return nil
		}
	}
	if !box.embodied() {
		end(was)
		return fault.New(fault.ErrConflict, "sandbox %s has no tracked process that runs", box.id)
	}
	box.turnTo(freezing, len(f.Steps) == 0 || f.Keep)
	began := time.Now()
	err = s.stopGuest(context.WithoutCancel(ctx), box, f)
	if err != nil || f.Keep {
		box.wire.Resume()
		end(running)
	} else {
		end(frozen)
	}
	if box.isOver() { // which is why it failed, if it did
		return fault.New(fault.ErrConflict, "sandbox %s ended while it was being frozen", box.id)
	}
	if err != nil {
		return err
	}
	if f.Fresh {
		box.partFromGuest()
	}
	s.log.Info("sandbox frozen", slog.String("sandbox", box.id), slog.Bool("goes on", f.Keep), slog.Duration("took", time.Since(began)))
	return nil
}

func checkFreeze(f *Freeze) error {
	if f == nil {
		return fault.Invalid("a freeze needs its description")
	}
	if f.Keep && len(f.Steps) == 0 {
		return fault.Invalid("sandbox %s: a freeze after which it goes on needs steps", f.ID)
	}
	if f.Fresh && (f.Keep || len(f.Steps) == 0) {
		return fault.Invalid("sandbox %s: a freeze that keeps no memory needs steps, and does not go on", f.ID)
	}
	for _, argv := range slices.Concat(f.Steps, f.Undo) {
		if len(argv) == 0 || !filepath.IsAbs(argv[0]) {
			return fault.Invalid("sandbox %s: a program of a freeze must be an absolute path", f.ID)
		}
	}
	for _, p := range []string{f.Dir, f.Log} {
		if p != "" && !filepath.IsAbs(p) {
			return fault.Invalid("sandbox %s: %q must be an absolute path", f.ID, text.Shorten(p, 256))
		}
	}
	for _, s := range slices.Concat(slices.Concat(f.Steps...), slices.Concat(f.Undo...), f.Env, []string{f.Dir, f.Log}) {
		if strings.ContainsRune(s, 0) {
			return fault.Invalid("sandbox %s: an argument, variable or path holds a zero byte", f.ID)
		}
	}
	return nil
}

// stopGuest quiesces the wire, stops the guest, and takes the wire away if it
// has ended. On an error, and with Keep, the guest runs as before, or has ended.
func (s *Server) stopGuest(ctx context.Context, box *sandbox, f *Freeze) error {
	quiet, cancel := context.WithTimeout(ctx, quietTimeout)
	defer cancel()
	if err := box.wire.Quiesce(quiet); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "sandbox %s can't be frozen now", box.id)
	}
	if len(f.Steps) == 0 {
		return box.signalProcesses(int(syscall.SIGSTOP))
	}
	if err := s.runSteps(box, f); err != nil || f.Keep {
		return err
	}
	if err := box.killTracked(ctx); err != nil {
		return err
	}
	return box.wire.Unplug()
}

// thawSandbox lets a frozen sandbox go on: l starts the processes again with a new
// wire as their stdin and stdout; without an argv they were stopped in place.
// On an error it is frozen as before. Thawing what runs does nothing. Like a
// launch it is not bound to its client.
func (s *Server) thawSandbox(ctx context.Context, box *sandbox, l *Launch) error {
	if l == nil || l.ID != box.id {
		return fault.Invalid("a thaw needs its description, for the same sandbox")
	}
	end, err := box.beginMove(ctx)
	if err != nil {
		return err
	}
	was, alive := box.phaseNow()
	switch {
	case !alive:
		end(was)
		return fault.New(fault.ErrConflict, "sandbox %s has ended", box.id)
	case was == running:
		end(was)
		return nil
	}
	box.turnTo(thawing, len(l.Argv) == 0)
	began := time.Now()
	if err := s.letGoOn(box, l); err != nil {
		end(frozen)
		if box.finished() {
			return fault.New(fault.ErrConflict, "sandbox %s ended while it was being thawed", box.id)
		}
		return err
	}
	end(running)
	s.log.Info("sandbox thawed", slog.String("sandbox", box.id), slog.Duration("took", time.Since(began)))
	return nil
}

func (s *Server) letGoOn(box *sandbox, l *Launch) error {
	switch parted := box.isParted(); {
	case parted && !l.Fresh:
		return fault.New(fault.ErrConflict, "of sandbox %s only files were kept, so that it is started anew", box.id)
	case l.Fresh:
		return s.thawFresh(box, l)
	}
	if len(l.Argv) == 0 {
		if err := box.signalProcesses(int(syscall.SIGCONT)); err != nil {
			return err
		}
		box.wire.Resume()
		return nil
	}
	argv, host, guest, err := s.starterOf(l)
	if err != nil {
		return err
	}
	defer guest.Close()
	if err := s.restart(box, l, argv, guest); err != nil {
		_ = host.Close()
		return err
	}
	box.mu.Lock()
	box.tracked, box.rebuilt = nil, true
	box.mu.Unlock()
	if err := box.wire.Plug(host); err != nil { // killed meanwhile
		_ = host.Close()
		return err
	}
	return nil
}

// starterOf is the argv of what thaws a sandbox, and a new wire for its guest.
func (s *Server) starterOf(l *Launch) (argv []string, host net.Conn, guest *os.File, err error) {
	if l.Attached {
		return nil, nil, nil, fault.Invalid("sandbox %s: what thaws a sandbox must be a starter, whose processes are tracked afterwards", l.ID)
	}
	if err := checkLaunch(l); err != nil {
		return nil, nil, nil, err
	}
	if argv, err = s.joiningArgv(l); err != nil {
		return nil, nil, nil, err
	}
	host, guest, err = channel.SocketPair()
	return argv, host, guest, err
}

// restart runs the starter of a thaw to its end.
func (s *Server) restart(box *sandbox, l *Launch, argv []string, guest *os.File) error {
	log, err := openLog(l.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	before, _ := log.Seek(0, 2)
	if err := s.bringUp(box, l, argv, guest, log); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "sandbox %s could not be thawed%s", l.ID, readLogTail(l.Log, before))
	}
	return nil
}
