package sandbox

import (
	"context"
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"

	"golang.org/x/sync/errgroup"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/copies"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/snapshots"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// creator makes sandboxes.
type creator struct {
	cfg          *Config
	spans        spans
	keys         *keys
	gate         *gate
	planner      *planner
	documents    documents
	registry     *registry
	tracker      *tracker
	ready        *ready
	assembly     *assembly
	guests       *guestCaller
	remover      *remover
	replacements *replacements
}

// Create is Manager.Create.
func (c *creator) Create(ctx context.Context, req Request) (s *Sandbox, err error) {
	ctx, done := c.spans.beginSpan(ctx, VerbCreate, "")
	defer func() { done(s, "", err) }()
	return c.keys.createOnce(ctx, req, func(digest string) (*Sandbox, error) {
		lease, err := c.planner.leaseSnapshot(ctx, req) // before the turn: it may take long
		if err != nil {
			return nil, err
		}
		leave, err := c.gate.enterGate(ctx, req.Owner.Token)
		if err != nil {
			lease.Release()
			return nil, err
		}
		defer leave()
		return c.createSandbox(ctx, req, lease, digest)
	})
}

// createSandbox makes a sandbox of a request, whose digest is there if it has an
// idempotency key. The lease of the snapshot, nil if there is none, is its own now.
//
// Its steps: the plan, for which nothing is made; the start, which takes the owner's
// share and writes the journal; the boot of an instance whose guest knows who it is; and
// the commit, by which others get to know of it.
func (c *creator) createSandbox(ctx context.Context, req Request, lease *snapshots.Lease, digest string) (*Sandbox, error) {
	req, err := c.planner.resolveRequest(ctx, req, lease)
	if err != nil {
		return nil, err
	}
	defer req.from.Release()
	p, err := c.planner.makePlan(ctx, req)
	if err != nil {
		return nil, err
	}
	if t, ok := p.engine.(engine.Maintainer); ok {
		defer t.Hurry(req.Owner.Token)()
	}
	begun, err := c.startCreation(ctx, p, req, digest)
	if err != nil {
		return nil, err
	}
	s, err := c.bootPlanned(ctx, p, req)
	if err != nil {
		begun.abortCreation(ctx, err)
		return nil, err
	}
	begun.commit(ctx, s)
	if err := c.releaseCreated(ctx, s, p); err != nil {
		return nil, err
	}
	return s, nil
}

// releaseCreated has a sandbox that was made be under the policy of now. Nobody has had its id
// yet: it is destroyed if it can't be.
func (c *creator) releaseCreated(ctx context.Context, s *Sandbox, p *creationPlan) error {
	err := c.replacements.applyReplaced(ctx, s)
	if p.follow != nil {
		p.follow() // also if it is destroyed: the begins of these commands are on record
	}
	if err != nil {
		return errors.Join(err, c.remover.destroy(context.WithoutCancel(ctx), s.info.ID))
	}
	return nil
}

// bootPlanned makes what was planned: the door knows of it first.
func (c *creator) bootPlanned(ctx context.Context, p *creationPlan, req Request) (*Sandbox, error) {
	run := admission.Run{
		Sandbox: p.info.ID, Run: p.info.Run, Task: req.Task, User: req.User, Token: req.Owner.Token,
		Policy: req.Policy, Lock: p.lock, Template: p.info.Template, Started: p.info.Created, Plan: req.Plan, Rehearsal: req.Rehearsal,
		Narrowing: req.Narrowing, Kept: c.documents.policy, Placeholders: p.info.Placeholders, Source: req.source, StandsIn: p.info.StandsIn(), TemplateDigest: p.info.Digest,
		Tools: req.Tools,
	}
	if err := c.registerSandbox(ctx, run, req.from); err != nil {
		c.ready.unclaim(ctx, p)
		return nil, err
	}
	faultpoint.Hit(faultpoint.CreateRegistered)
	s, err := c.launch(ctx, p, req)
	if err != nil {
		c.cfg.Door.Unregister(p.info.ID)
		return nil, err
	}
	return s, nil
}

// registerSandbox makes a new sandbox known to the door.
func (c *creator) registerSandbox(ctx context.Context, run admission.Run, from *copies.Origin) error {
	if from == nil {
		return c.cfg.Door.Register(run)
	}
	return c.planner.copies.Register(ctx, run, from)
}

// launch starts the instance and gives the guest its identity.
func (c *creator) launch(ctx context.Context, p *creationPlan, req Request) (*Sandbox, error) {
	if err := c.cfg.Door.SandboxStarted(ctx, p.info.ID); err != nil {
		c.ready.unclaim(ctx, p)
		return nil, err
	}
	faultpoint.Hit(faultpoint.CreateRecorded)
	inst, err := c.instance(ctx, p, req.from)
	if err != nil {
		return nil, c.recordFailedBoot(ctx, p.info.ID, err)
	}
	faultpoint.Hit(faultpoint.CreateLaunched)
	p.info.Handle = inst.Handle()
	s := c.assembly.sandbox(p.info, req.Policy, inst)
	if p.info.IsCopy() {
		s.inventory.Distrust()
	}
	s.waits = suspend.New(c.remover.background.ctx, c.assembly.waitConfig(s))
	if err := c.introduce(ctx, s, p, req); err != nil {
		c.tellWhy(context.WithoutCancel(ctx), p.info.ID, inst, err)
		if derr := inst.Destroy(context.WithoutCancel(ctx)); derr != nil {
			c.cfg.Log.Error("a sandbox that did not come up can't be taken away", "sandbox", p.info.ID, "err", derr)
		}
		return nil, c.recordFailedBoot(ctx, p.info.ID, err) // now that a copy's programs ask for nothing more
	}
	s.setState(Running)
	return s, nil
}

// instance is the one that was claimed, or a new one: from the template, or as a copy.
func (c *creator) instance(ctx context.Context, p *creationPlan, from *copies.Origin) (engine.Instance, error) {
	switch {
	case p.claimed != nil:
		return p.claimed, nil
	case from == nil:
		return p.engine.Create(ctx, p.spec)
	default:
		return c.planner.copies.Restore(ctx, p.engine, p.spec, from)
	}
}

// recordFailedBoot records that a sandbox which has begun did not come up, for a cause. It returns
// that: as a notRecorded if the log did not take it.
func (c *creator) recordFailedBoot(ctx context.Context, id string, cause error) error {
	if err := c.cfg.Door.SandboxEnded(context.WithoutCancel(ctx), id, "did not come up"); err != nil {
		c.cfg.Log.Error("a failed start is not on record; it is tried again", "sandbox", id, "err", err)
		return &notRecorded{cause}
	}
	return cause
}

// notRecorded is why a sandbox did not come up whose end is not on record yet.
type notRecorded struct{ error }

func (e *notRecorded) Unwrap() error { return e.error }

// tellWhy logs what is known of an instance that did not come up, before it is taken away:
// whether it worked, and what its kernel and agent said.
func (c *creator) tellWhy(ctx context.Context, id string, inst engine.Instance, err error) {
	told := []any{"sandbox", id, "err", err}
	if stats, serr := inst.Stats(ctx); serr == nil {
		told = append(told, "processor_ms", stats.CPUNanos/1e6, "memory_bytes", stats.MemoryBytes, "tasks", stats.Pids)
	}
	if witness, ok := inst.(engine.Witness); ok {
		told = append(told, "words", witness.Words())
	}
	c.cfg.Log.Error("a sandbox did not come up", told...)
}

// introduce tells the keeper and the disk what to remember, and the guest who it
// is, at the same time: neither needs the other, and somebody waits for both.
func (c *creator) introduce(ctx context.Context, s *Sandbox, p *creationPlan, req Request) error {
	// Its mounts are laid, each with all that lay below it: what came since they were checked came before this.
	if err := c.guests.rules.CheckStill(p.spec.Mounts, p.info.TemplateMounts); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	var both errgroup.Group
	both.Go(func() error {
		return safego.Try(func() error {
			if err := c.guests.rememberInfo(ctx, p.info, nil); err != nil {
				return err
			}
			faultpoint.Hit(faultpoint.CreateRemembered)
			return c.guests.blueprints.Keep(p.info.ID, copies.Blueprint{Spec: p.spec, Env: req.Env, Mounts: req.Mounts})
		})
	})
	both.Go(func() error {
		return safego.Try(func() error { return c.guests.configure(ctx, p.identity(req.Env)) })
	})
	if err := both.Wait(); err != nil {
		return err
	}
	var err error
	if p.follow, err = c.takeUp(ctx, s, req.from); err != nil {
		return err
	}
	err = c.assembly.inventory.Learn(ctx, s.info)
	faultpoint.Hit(faultpoint.CreateListed)
	return err
}

// takeUp gives the commands that ran in a copy's source a place in the copy.
func (c *creator) takeUp(ctx context.Context, s *Sandbox, from *copies.Origin) (follow func(), err error) {
	faultpoint.Hit(faultpoint.RestoreConfigured)
	if from == nil || from.Contents != engine.ContentsMemory {
		return nil, nil //nolint:nilnil // nothing goes on in it
	}
	if err := c.guests.stopClocks(ctx, s.info.ID, false); err != nil { // the source may have waited for a person; the copy does not
		return nil, err
	}
	return s.commands.Adopt(ctx, from.Of.ID, from.Commands)
}

// creation is a sandbox that is being made: its owner's share is taken, the sweeps
// leave its id and its lockfiles alone, and the journal knows of it.
type creation struct {
	*creator
	entry Entry
	leave func()
}

// reserve takes what a sandbox's owner has a share of, and only then keeps what it was sent: what a quota
// refuses leaves nothing. giveBack is for a sandbox that is not to be; release, of a documents.keepDocuments, for
// one that others know of.
func (c *creator) reserve(ctx context.Context, p *creationPlan, req Request) (giveBack, release func(), err error) {
	quotas := c.tracker.quotas
	if err := quotas.Take(p.info.ID, shareOf(p.info), req.Owner.Quota); err != nil {
		return nil, nil, err
	}
	if err := c.cfg.Homes.Take(p.info.Home, p.info.ID); err != nil {
		quotas.Drop(p.info.ID)
		return nil, nil, err
	}
	release, err = c.documents.keepDocuments(req, p.lock)
	giveBack = func() { // by the id that it has then
		if release != nil {
			c.remover.dropLock(ctx, p.info, release)
		}
		c.cfg.Homes.Drop(p.info.ID)
		quotas.Drop(p.info.ID)
	}
	if err != nil {
		giveBack()
		return nil, nil, err
	}
	return giveBack, release, nil
}

// startCreation takes what a sandbox needs before anything of it is made. The owner of a creation
// ends it with commit or abortCreation.
func (c *creator) startCreation(ctx context.Context, p *creationPlan, req Request, digest string) (*creation, error) {
	if req.Lifetime.Then.Pauses() {
		if err := c.planner.engines.canPause(ctx, p.info.Engine); err != nil {
			return nil, err
		}
	}
	own := p.info.ID
	giveBack, release, err := c.reserve(ctx, p, req)
	if err != nil {
		return nil, err
	}
	faultpoint.Hit(faultpoint.CreatePlanned)
	c.ready.claimInstance(ctx, p) // the plan may have another id now
	c.tracker.quotas.Rename(own, p.info.ID)
	c.cfg.Homes.Rename(own, p.info.ID)
	occupied := c.registry.occupy(p.info.ID)
	begun := &creation{
		creator: c, leave: func() { occupied(); release() },
		entry: Entry{Info: p.info, State: Creating, Key: req.IdempotencyKey, Request: digest},
	}
	c.registry.discharge(p.info.ID)
	if err := c.tracker.journal.Enter(ctx, begun.entry, "", ""); err != nil {
		c.ready.unclaim(ctx, p)
		giveBack()
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
	c.tracker.ends.Start(s.info.ID, termsOf(s.lifetime), s.lifetime.TTL)
	s.turn.Lock()
	defer s.turn.Unlock()
	s.clients.Touch()    // it may have taken long
	c.assembly.appear(s) // before anybody hears of it
	c.tracker.ends.Announce(s.info.ID)
	c.tracker.correct(ctx, s, Running, "")
	faultpoint.Hit(faultpoint.CreateRunning)
}

// abortCreation ends a creation that came to nothing. The next reconcile tries again what can't be taken away, or written.
func (c *creation) abortCreation(ctx context.Context, cause error) {
	id, log := c.entry.Info.ID, c.cfg.Log.With("sandbox", c.entry.Info.ID, "run", c.entry.Info.Run)
	ctx = context.WithoutCancel(ctx)
	defer c.remover.dropLock(ctx, c.entry.Info, c.leave)
	c.tracker.quotas.Drop(id)
	defer c.cfg.Homes.Drop(id) // nothing of it is there any more
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
	if _, open := errors.AsType[*notRecorded](cause); open {
		return // the journal keeps it for that
	}
	e.State = Destroyed
	if err := c.tracker.journal.Enter(ctx, e, Failed, ""); err != nil {
		log.Error("the end of a create is not in the journal; it is made up for later", "err", err)
	}
}
