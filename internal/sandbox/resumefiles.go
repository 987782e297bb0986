package sandbox

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
)

// ResumeFiles is Resume, and starts the sandbox anew on its files, whatever was kept of
// its memory. An engine reads a memory's files only by letting it go on: so what runs
// goes on for as long as it takes to write them, and ends with a pause of files, which
// is on record. One that runs is left alone, so that of several who ask at once none
// ends what another has begun. If the files can't be had alone it is a
// fault.ErrUnavailable, and the sandbox is paused with its memory again.
func (m *Manager) ResumeFiles(ctx context.Context, id string) (was bool, err error) {
	s, err := m.Get(id)
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
		return m.Resume(ctx, id)
	}
	if _, _, err := m.planAnew(ctx, s); err != nil { // of what can't be started nothing is to be lost
		return true, err
	}
	if was, err := m.Resume(ctx, id); err != nil || !was {
		return was, err
	}
	faultpoint.Hit(faultpoint.ResumeForFiles)
	if err := m.PauseFiles(ctx, id); err != nil {
		if back := m.Pause(context.WithoutCancel(ctx), id); back != nil {
			m.cfg.Log.Error("a sandbox that was to be started on its files alone goes on with its memory", "sandbox", id, "err", back)
		}
		return true, fault.Wrap(fault.ErrUnavailable, err, "the sandbox %s can't be started on its files alone", id)
	}
	return m.Resume(ctx, id)
}
