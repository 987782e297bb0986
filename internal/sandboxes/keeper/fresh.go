package keeper

import (
	"slices"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// A sandbox that is frozen with Fresh keeps its id, its meta and what is known of its
// commands, and nothing of its guest: the commands and streams end with the freeze.
// A new guest thaws it, with a session of its own, which must be configured.
// For the keeper that is another sandbox under the same id, its heir: who has hold of
// the one before is passed on to it.

// partFromGuest ends what was open with the guest of a sandbox that has been frozen with Fresh.
func (s *sandbox) partFromGuest() {
	s.mu.Lock()
	s.parted = true
	s.mu.Unlock()
	_ = s.session.Close()
}

// goneBecause is what a command is told that loses its guest.
func (s *sandbox) goneBecause() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parted {
		return "the sandbox was paused, and only its files were kept"
	}
	return "the sandbox ended"
}

// successor is the sandbox that has taken this one's place; nil: none has.
func (s *sandbox) successor() *sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heir
}

// thawFresh starts a frozen sandbox anew. On an error it is frozen as before.
func (s *Server) thawFresh(box *sandbox, l *Launch) error {
	if l.Reset {
		return fault.Invalid("sandbox %s: what is started anew on a sandbox's files is no copy", l.ID)
	}
	argv, host, guest, err := s.starterOf(l)
	if err != nil {
		return err
	}
	defer guest.Close()
	heir, err := s.newSandbox(l, nil, host)
	if err != nil {
		_ = host.Close()
		return err
	}
	heir.started, heir.rebuilt, heir.refusals = box.started, true, box.refusals
	defer close(heir.settled)
	box.expect(heir)
	if err = s.restart(heir, l, argv, guest); err == nil {
		err = s.succeed(box, heir)
	}
	box.expect(nil)
	if err != nil {
		_ = heir.session.Close()
		_ = host.Close()
		return err
	}
	safego.In(&s.streams, func() { s.uplink.serveStreams(heir) })
	return nil
}

// expect has a kill reach a heir that is being started; nil: there is none any more.
func (s *sandbox) expect(heir *sandbox) {
	s.mu.Lock()
	s.coming = heir
	doomed := s.killed && heir != nil
	s.mu.Unlock()
	if doomed {
		heir.doomStarts()
	}
}

// doomStarts ends what is being started, or is about to be.
func (s *sandbox) doomStarts() {
	s.mu.Lock()
	s.killed = true
	starter := s.starter
	s.mu.Unlock()
	if starter != nil {
		_ = s.reaper.signalChild(starter, syscall.SIGKILL, true) // one that has ended needs none
	}
}

// isParted tells whether it was frozen with Fresh.
func (s *sandbox) isParted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parted
}

// finished is over, but for a sandbox whose channel ended with its freeze.
func (s *sandbox) finished() bool {
	s.mu.Lock()
	frozen := s.parted && !s.killed && s.isAlive()
	s.mu.Unlock()
	return !frozen && s.isOver()
}

// succeed puts the heir in the place of a sandbox, unless that was killed meanwhile.
func (s *Server) succeed(box, heir *sandbox) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	box.mu.Lock()
	defer box.mu.Unlock()
	heir.mu.Lock()
	defer heir.mu.Unlock()
	if box.killed || s.sandboxes[box.id] != box {
		return fault.New(fault.ErrConflict, "sandbox %s ended while it was being thawed", box.id)
	}
	heir.meta, heir.commands = box.meta, slices.Clone(box.commands)
	box.output.passTo(heir)
	s.sandboxes[box.id] = heir
	box.heir, box.killed = heir, true
	return nil
}
