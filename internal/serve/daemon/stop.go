package daemon

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// stillLive refuses to end a daemon that has so many sandboxes.
func stillLive(n int) error {
	return fault.New(fault.ErrConflict, "%d %s; end %s first, or force the stop", n, ui.Noun(n, "sandbox lives", "sandboxes live"), ui.Noun(n, "it", "them"))
}

// requestStop ends the daemon, and with force its sandboxes first. A sandbox that
// can't be ended does not keep the daemon: the next one sweeps it away.
func (d *Daemon) requestStop(force bool) error {
	if n := d.sandboxes.Count(); n > 0 && !force {
		return stillLive(n)
	}
	var err error
	if force {
		err = destroyAll(d.sandboxes.List(), func(s *sandbox.Sandbox) error { return d.sandboxes.Destroy(context.Background(), s.Info().ID) })
	}
	d.endRun()
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the daemon ends, and not all of its sandboxes have: they may run on until a daemon is started again, which takes them away")
	}
	return nil
}

// destroysAtOnce is how many sandboxes a forced stop takes away at a time: each may wait for seconds until what it asked for at last is
// on record.
const destroysAtOnce = 16

// destroyAll tries each, and joins the errors.
func destroyAll[S any](all []S, destroy func(S) error) error {
	errs := make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(destroysAtOnce)
	for i, one := range all {
		group.Go(func() error {
			errs[i] = safego.Try(func() error { return destroy(one) })
			return nil
		})
	}
	_ = group.Wait() // each has its error in its place
	return errors.Join(errs...)
}
