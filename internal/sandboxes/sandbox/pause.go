package sandbox

import (
	"context"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// pauser writes sandboxes to disk because somebody asked for it, and lets them go on.
type pauser struct {
	cfg      *Config
	registry *registry
	spans    spans
	engines  engines
	guests   *guestCaller
	tracker  *tracker
}

// Pause writes the sandbox to disk and frees its memory. A caller that asks while it is being
// paused joins that pause. It is a fault.ErrConflict for one that is paused already, or being
// destroyed, and a fault.ErrUnavailable where the engine can't, there is no room, or it failed: the
// sandbox goes on then. One that is frozen because it waits for a person is paused besides. It goes
// on when ctx ends.
func (p *pauser) Pause(ctx context.Context, id string) error { return p.pauseSandbox(ctx, id, false) }

// PauseFiles pauses, and keeps the sandbox's files alone, without those of memory file systems such
// as /tmp: its commands end, and a resume starts it anew. A sandbox that waits for a person, and is
// on disk with its memory for that, is a fault.ErrConflict.
func (p *pauser) PauseFiles(ctx context.Context, id string) error {
	return p.pauseSandbox(ctx, id, true)
}

func (p *pauser) pauseSandbox(ctx context.Context, id string, files bool) (err error) {
	ctx, done := p.spans.beginSpan(ctx, VerbPause, id)
	defer func() { done(nil, "", err) }()
	s, err := p.registry.getSandbox(id)
	if err != nil {
		return err
	}
	if state, _ := s.State(); state.Ends() || state == Creating {
		return state.Refuse(id)
	}
	if err := p.engines.canPause(ctx, s.info.Engine); err != nil {
		return err
	}
	pause := s.waits.Pause
	if files {
		if _, err := p.guests.blueprints.Load(id); err != nil { // what a resume needs
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

// Resume lets a paused sandbox go on; true if it was paused. A sandbox that its policy and
// advisories would refuse today is a fault.ErrForbidden, and what would be more than its owner may
// have a fault.ErrExhausted: it stays paused. A sandbox that is frozen because it waits for a
// person is a fault.ErrConflict that names the request.
func (p *pauser) Resume(ctx context.Context, id string) (was bool, err error) {
	ctx, done := p.spans.beginSpan(ctx, VerbResume, id)
	defer func() { done(nil, "", err) }()
	s, err := p.registry.getSandbox(id)
	if err != nil {
		return false, err
	}
	if state, _ := s.State(); state.Ends() || state == Creating {
		return false, state.Refuse(id)
	}
	// One that is being paused gives its share back when it is: only then can it be
	// known whether it may have it again.
	v, err := s.awaitPaused(ctx)
	if err != nil {
		return false, err
	}
	if v.State != suspend.Paused {
		return false, waitsFor(id, v)
	}
	p.tracker.ends.Renew(id) // its time may have been over: the pause was its end
	if err := p.cfg.Door.Recheck(ctx, id); err != nil {
		return true, err
	}
	if err := p.guests.checkSameShown(ctx, s.info); err != nil {
		return true, err
	}
	if v.Files { // of what can't be started nothing is to be lost
		if _, _, err := p.guests.identityOf(ctx, s); err != nil {
			return true, err
		}
	}
	if err := p.tracker.quotas.Wake(id, s.info.Owner.Quota); err != nil {
		return true, err
	}
	faultpoint.Hit(faultpoint.ResumeChecked)
	defer p.restIfPaused(s)
	was, err = s.waits.Resume(ctx)
	if err != nil {
		return was, err
	}
	s.clients.Touch()
	faultpoint.Hit(faultpoint.ResumeDone)
	return was, nil
}

// ResumeFiles is Resume, and starts the sandbox anew on its files, whatever was kept of
// its memory. An engine reads a memory's files only by letting it go on: so what runs
// goes on for as long as it takes to write them, and ends with a pause of files, which
// is on record. One that runs is left alone, so that of several who ask at once none
// ends what another has begun. If the files can't be had alone it is a
// fault.ErrUnavailable, and the sandbox is paused with its memory again.
func (p *pauser) ResumeFiles(ctx context.Context, id string) (was bool, err error) {
	s, err := p.registry.getSandbox(id)
	if err != nil {
		return false, err
	}
	select {
	case s.anew <- struct{}{}:
		defer func() { <-s.anew }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if state, _ := s.State(); state != Paused || s.FilesAlone() {
		return p.Resume(ctx, id)
	}
	if _, _, err := p.guests.identityOf(ctx, s); err != nil { // of what can't be started nothing is to be lost
		return true, err
	}
	if was, err := p.Resume(ctx, id); err != nil || !was {
		return was, err
	}
	faultpoint.Hit(faultpoint.ResumeForFiles)
	if err := p.PauseFiles(ctx, id); err != nil {
		if back := p.Pause(context.WithoutCancel(ctx), id); back != nil {
			p.cfg.Log.Error("a sandbox that was to be started on its files alone goes on with its memory", "sandbox", id, "err", back)
		}
		return true, fault.Wrap(fault.ErrUnavailable, err, "the sandbox %s can't be started on its files alone", id)
	}
	return p.Resume(ctx, id)
}

// restIfPaused gives back what a resume took that came to nothing.
func (p *pauser) restIfPaused(s *Sandbox) {
	if s.waits.View().State == suspend.Paused {
		p.tracker.quotas.Rest(s.info.ID)
	}
}

// waitsFor refuses what is on disk for a hold.
func waitsFor(id string, v suspend.View) error {
	if v.State != suspend.Frozen && v.State != suspend.Freezing {
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
