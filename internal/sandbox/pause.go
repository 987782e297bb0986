package sandbox

import (
	"context"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/copies"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/waiting"
)

// Pause writes the sandbox to disk and frees its memory. Who asks while it is being
// paused joins that pause. It is a fault.ErrConflict for one that is paused already,
// or being destroyed, and a fault.ErrUnavailable where the engine can't, there is no
// room, or it failed: the sandbox goes on then. One that is frozen because it waits for
// a person is paused besides. It goes on when ctx ends.
func (m *Manager) Pause(ctx context.Context, id string) error { return m.pause(ctx, id, false) }

// PauseFiles is Pause, and keeps the sandbox's files alone, without those of memory
// file systems such as /tmp: its commands end, and a resume starts it anew. What waits
// for a person, and is on disk with its memory for that, is a fault.ErrConflict.
func (m *Manager) PauseFiles(ctx context.Context, id string) error { return m.pause(ctx, id, true) }

func (m *Manager) pause(ctx context.Context, id string, files bool) (err error) {
	ctx, done := m.observe(ctx, VerbPause, id)
	defer func() { done(nil, "", err) }()
	s, err := m.Get(id)
	if err != nil {
		return err
	}
	if state, _ := s.State(); state.Ends() || state == Creating {
		return fault.New(fault.ErrConflict, "the sandbox %s is %s", id, state)
	}
	if err := m.canPause(ctx, s.info.Engine); err != nil {
		return err
	}
	pause := s.waits.Pause
	if files {
		if _, err := m.blueprints.Load(id); err != nil { // what a resume needs
			return err
		}
		pause = s.waits.PauseFiles
	}
	if err := pause(ctx); err != nil {
		return err
	}
	faultpoint.Hit(faultpoint.PauseDone)
	return nil
}

// canPause refuses what an engine can't do here.
func (m *Manager) canPause(ctx context.Context, name string) error {
	eng, ok := m.cfg.Engines[name]
	if !ok {
		return fault.New(fault.ErrUnavailable, "there is no engine %q any more", name)
	}
	caps, err := eng.Capabilities(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(caps.Enforces, engine.ControlFreeze) {
		return fault.New(fault.ErrUnavailable, "the engine %s can't pause sandboxes here%s", name, caps.Because(engine.ControlFreeze))
	}
	return nil
}

// Resume lets a paused sandbox go on; true if it was paused. What its policy and
// advisories would refuse today is a fault.ErrForbidden, and what would be more than
// its owner may have a fault.ErrExhausted: it stays paused. A sandbox that is frozen
// because it waits for a person is a fault.ErrConflict that names the request.
func (m *Manager) Resume(ctx context.Context, id string) (was bool, err error) {
	ctx, done := m.observe(ctx, VerbResume, id)
	defer func() { done(nil, "", err) }()
	s, err := m.Get(id)
	if err != nil {
		return false, err
	}
	if state, _ := s.State(); state.Ends() || state == Creating {
		return false, fault.New(fault.ErrConflict, "the sandbox %s is %s", id, state)
	}
	// One that is being paused gives its share back when it is: only then can it be
	// known whether it may have it again.
	v, err := s.awaitPaused(ctx)
	if err != nil {
		return false, err
	}
	if v.State != waiting.Paused {
		return false, waitsFor(id, v)
	}
	m.ends.Renew(id) // its time may have been over: the pause was its end
	if err := m.cfg.Door.Recheck(ctx, id); err != nil {
		return true, err
	}
	if v.Files { // of what can't be started nothing is to be lost
		if _, _, err := m.planAnew(ctx, s); err != nil {
			return true, err
		}
	}
	if err := m.quotas.Wake(id, s.info.Owner.Quota); err != nil {
		return true, err
	}
	faultpoint.Hit(faultpoint.ResumeChecked)
	defer m.restIfPaused(s)
	was, err = s.waits.Resume(ctx)
	if err != nil {
		return was, err
	}
	s.clients.Touch()
	faultpoint.Hit(faultpoint.ResumeDone)
	return was, nil
}

// FilesAlone tells that the sandbox is paused and its memory was not kept: only a
// Resume that somebody asked for starts it, anew.
func (s *Sandbox) FilesAlone() bool {
	s.mu.Lock()
	pretends := s.pretends
	s.mu.Unlock()
	return pretends || s.waits.View().Files
}

// beginAnew gives the guest its identity that was started on a sandbox's files.
func (m *Manager) beginAnew(ctx context.Context, s *Sandbox) error {
	p, req, err := m.planAnew(ctx, s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bootPatience)
	defer cancel()
	if err := m.configure(ctx, p, req); err != nil {
		return err
	}
	return m.blueprints.Keep(p.info.ID, copies.Blueprint{Spec: p.spec, Env: req.Env, Mounts: req.Mounts}) // its agent may be of another version than the one before
}

// planAnew is what beginAnew needs to know.
func (m *Manager) planAnew(ctx context.Context, s *Sandbox) (*plan, Request, error) {
	kept, err := m.blueprints.Load(s.info.ID)
	if err != nil {
		return nil, Request{}, err
	}
	tpl, err := m.cfg.Templates.Generation(ctx, s.info.Template, s.info.Digest)
	if err != nil {
		return nil, Request{}, err
	}
	p := &plan{info: s.info, template: tpl, spec: kept.Spec, account: account(s.info.Account, tpl), workspace: s.policy.Workspace()}
	p.caPEM, p.names, err = m.cfg.Trust(ctx)
	return p, Request{Env: kept.Env, Mounts: kept.Mounts, Account: s.info.Account}, err
}

// awaitPaused returns the view when no pause is under way.
func (s *Sandbox) awaitPaused(ctx context.Context) (waiting.View, error) {
	for {
		v := s.waits.View()
		if !v.Pausing {
			return v, nil
		}
		select {
		case <-v.Changed:
		case <-s.gone:
			return v, fault.New(fault.ErrConflict, "the sandbox %s has ended", s.info.ID)
		case <-ctx.Done():
			return v, ctx.Err()
		}
	}
}

// restIfPaused gives back what a resume took that came to nothing.
func (m *Manager) restIfPaused(s *Sandbox) {
	if s.waits.View().State == waiting.Paused {
		m.quotas.Rest(s.info.ID)
	}
}

// waitsFor refuses what is on disk for a hold.
func waitsFor(id string, v waiting.View) error {
	if v.State != waiting.Frozen && v.State != waiting.Freezing {
		return nil
	}
	var requests []string
	for _, h := range v.Holds {
		if h.Freeze && !slices.Contains(requests, h.Approval) {
			requests = append(requests, h.Approval)
		}
	}
	return fault.New(fault.ErrConflict, "the sandbox %s is %s, because it waits for a person: see request %s", id, v.State, strings.Join(requests, ", "))
}
