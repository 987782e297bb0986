package sandbox

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
)

// creation is a sandbox that is being made: its owner's share is taken, the sweeps
// leave its id alone, and the journal knows of it.
type creation struct {
	*creator
	entry Entry
	leave func()
}

// start takes what a sandbox needs before anything of it is made. Whoever has a
// creation ends it with commit or abort.
func (c *creator) start(ctx context.Context, p *plan, req Request, digest string) (*creation, error) {
	if err := c.documents.keepPolicy(req.Policy.Digest(), req.PolicyText); err != nil {
		return nil, err
	}
	if err := c.documents.keepLock(req.Lock, p.lock); err != nil {
		return nil, err
	}
	faultpoint.Hit(faultpoint.CreatePlanned)
	if req.Lifetime.Then.Pauses() {
		if err := c.planner.engines.canPause(ctx, p.info.Engine); err != nil {
			return nil, err
		}
	}
	own, quotas := p.info.ID, c.tracker.quotas
	if err := quotas.Take(own, shareOf(p.info), req.Owner.Quota); err != nil {
		return nil, err
	}
	c.ready.claim(ctx, p) // the plan may have another id now
	quotas.Rename(own, p.info.ID)
	begun := &creation{
		creator: c, leave: c.registry.occupy(p.info.ID),
		entry: Entry{Info: p.info, State: Creating, Key: req.IdempotencyKey, Request: digest},
	}
	c.registry.discharge(p.info.ID)
	if err := c.tracker.journal.Enter(ctx, begun.entry, "", ""); err != nil {
		c.ready.unclaim(ctx, p)
		quotas.Drop(p.info.ID)
		begun.leave()
		return nil, fault.Wrap(fault.ErrUnavailable, err, "no sandbox can be made, because the journal of sandboxes can't be written")
	}
	faultpoint.Hit(faultpoint.CreateJournaled)
	return begun, nil
}

// commit ends a creation with a sandbox that runs.
func (c *creation) commit(ctx context.Context, s *Sandbox) {
	defer c.leave()
	s.key, s.request, s.first = c.entry.Key, c.entry.Request, c.cfg.Door.FirstRecord(s.info.ID)
	c.tracker.ends.Start(s.info.ID, terms(s.lifetime), s.lifetime.TTL)
	s.turn.Lock()
	defer s.turn.Unlock()
	c.assembly.appear(s) // before anybody hears of it
	c.tracker.ends.Announce(s.info.ID)
	c.tracker.correct(ctx, s, Running, "")
	faultpoint.Hit(faultpoint.CreateRunning)
}

// abort ends a creation that came to nothing. What can't be taken away, or written, is
// tried again by the next reconcile.
func (c *creation) abort(ctx context.Context, cause error) {
	id, log := c.entry.Info.ID, c.cfg.Log.With("sandbox", c.entry.Info.ID, "run", c.entry.Info.Run)
	ctx = context.WithoutCancel(ctx)
	defer c.leave()
	c.tracker.quotas.Drop(id)
	c.remover.forgetFiles(id)
	e := c.entry
	e.State = Failed
	if err := c.tracker.journal.Enter(ctx, e, Creating, cause.Error()); err != nil {
		log.Error("the end of a create is not in the journal; it is made up for later", "err", err)
		return
	}
	if eng := c.cfg.Engines[e.Info.Engine]; eng != nil {
		if err := eng.Sweep(ctx, id); err != nil {
			log.Error("what a create left can't be swept away; it is tried again", "err", err)
			return
		}
	}
	e.State = Destroyed
	if err := c.tracker.journal.Enter(ctx, e, Failed, ""); err != nil {
		log.Error("the end of a create is not in the journal; it is made up for later", "err", err)
	}
}
