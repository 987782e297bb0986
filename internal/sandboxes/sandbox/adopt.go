package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/recovery"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// adopter takes sandboxes over from the daemon before. It tells the tidier of those that
// there are.
type adopter struct {
	cfg       *Config
	documents documents
	registry  *registry
	keys      *keys
	tracker   *tracker
	assembly  *assembly
	remover   *remover
	tidier    *recovery.Tidier
}

var _ recovery.Sandboxes = (*adopter)(nil)

// Knows implements recovery.Sandboxes.
func (a *adopter) Knows(id string) bool { return a.registry.knowsID(id) }

// IDs implements recovery.Sandboxes.
func (a *adopter) IDs() []string {
	var ids []string
	for _, s := range a.registry.listSandboxes() {
		ids = append(ids, s.info.ID)
	}
	return ids
}

// Lost implements recovery.Sandboxes.
func (a *adopter) Lost(ctx context.Context, id, reason string) {
	if s, err := a.registry.getSandbox(id); err == nil {
		a.remover.failSandbox(ctx, s, engine.Exit{Code: lostCode, Reason: reason})
	}
}

// Tidy implements recovery.Sandboxes.
func (a *adopter) Tidy(ctx context.Context) {
	a.assembly.inventory.Sweep(a.registry.knowsID)
	a.remover.blueprints.Sweep(a.registry.knowsID)
	a.remover.sweepLocks(ctx)
	for _, s := range a.registry.listSandboxes() {
		a.tracker.catchUp(ctx, s)
	}
}

// errUnclaimed: what a daemon makes before anybody asks for it has no policy yet, and serves
// nobody but that daemon.
var errUnclaimed = errors.New("it was ready in the pool of the daemon before, and nobody had claimed it")

// adoptSandbox takes a living, paused or frozen sandbox back and follows its commands.
func (a *adopter) adoptSandbox(ctx context.Context, f recovery.Found) error {
	k, e := f.Keeper, f.Entry
	var known meta
	if err := json.Unmarshal(k.Meta, &known); err != nil || known.ID != k.ID {
		return fmt.Errorf("its meta is not ours: %w", errors.Join(err, fault.ErrInvalid))
	}
	info := known.Info
	if f.Journaled() {
		info = e.Info
	} else if info.PolicyDigest == "" {
		return errUnclaimed
	}
	s, err := a.reopen(ctx, info, e.First)
	if err != nil {
		return err
	}
	s.key, s.request, s.first = e.Key, e.Request, a.cfg.Door.FirstRecord(info.ID)
	s.entered, s.written = e.State, e.State
	left := info.Lifetime.TTL
	if f.Journaled() {
		s.lifetime, left = e.Clock.Lifetime, e.Clock.LeftAt(a.tracker.boot())
	}
	a.tracker.ends.Start(info.ID, termsOf(s.lifetime), left) // the list tells whether it stands still
	a.tracker.ends.Activate(info.ID, e.Clock.ActiveAt(a.tracker.boot()))
	s.commands.Inherit(e.Guards) // before the journal is written anew
	if err := a.takeOver(ctx, s, k, known.Waiting); err != nil {
		a.tracker.ends.Drop(info.ID)
		a.cfg.Door.Unregister(info.ID)
		return err
	}
	a.adopted(ctx, s)
	s.commands.FollowAgain(ctx, k.Commands)
	if why := a.cfg.Door.MustEnd(info.ID); why != "" {
		a.remover.endFor(s, why)
	} else if info.Workshop {
		a.remover.endFor(s, "the build that it was for ended with the daemon before")
	}
	a.tracker.ends.Announce(info.ID) // now it can be found, and whether it is busy is known
	return nil
}

// reopen makes a sandbox of what is known of it.
func (a *adopter) reopen(ctx context.Context, info Info, first uint64) (*Sandbox, error) {
	p, err := a.documents.policy(info.PolicyDigest)
	if err != nil {
		return nil, err
	}
	if info.Workshop {
		p = p.Apart()
	}
	lock, err := a.documents.readLocks(info.LockDigest)
	if err != nil {
		return nil, err
	}
	eng, ok := a.cfg.Engines[info.Engine]
	if !ok {
		return nil, fmt.Errorf("there is no engine %q any more", info.Engine)
	}
	inst, err := eng.Open(ctx, info.Handle)
	if err != nil {
		return nil, err
	}
	run := admission.Run{
		Sandbox: info.ID, Run: info.Run, Task: info.Task, User: info.User, Token: info.Owner.Token,
		Policy: p, Lock: lock, Template: info.Template, Started: info.Created, Plan: info.Plan, Rehearsal: info.Rehearsal, StandsIn: info.StandsIn(),
		Ancestors: info.Ancestors, First: first, Kept: a.documents.policy, Placeholders: info.Placeholders, TemplateDigest: info.Digest,
	}
	if err := a.cfg.Door.Restore(ctx, run); err != nil {
		return nil, err
	}
	s := a.assembly.sandbox(info, p, inst)
	s.inventory.Distrust()
	s.state = Running
	return s, nil
}

// adopted makes a sandbox that was taken over known. The journal has its state as it
// is: what the daemon before was about is over.
func (a *adopter) adopted(ctx context.Context, s *Sandbox) {
	s.turn.Lock()
	state, _ := s.State()
	if s.entered != state {
		a.tracker.correct(ctx, s, state, "a new daemon took it over")
	}
	s.turn.Unlock()
	a.tracker.quotas.Put(s.info.ID, shareOf(s.info), state == Paused)
	a.cfg.Homes.Put(s.info.Home, s.info.ID)
	a.keys.remind(s)
	s.clients.Touch() // those of the daemon before have to find this one first
	a.assembly.appear(s)
	if err := a.cfg.Door.SandboxAdopted(ctx, s.info.ID, string(state)); err != nil {
		a.cfg.Log.Error("that a sandbox was taken over is not on record", "sandbox", s.info.ID, "run", s.info.Run, "err", err)
	}
	faultpoint.Hit(faultpoint.RecoverAdopted)
}

// takeOver finds out whether the sandbox runs or is frozen. The keeper knows: a
// freeze or thaw that it has begun it ends, whatever becomes of the daemon.
func (a *adopter) takeOver(ctx context.Context, s *Sandbox, k keeper.Sandbox, saved *suspend.Saved) error {
	k, err := a.tidier.AtRest(ctx, k)
	cfg := a.assembly.waitConfig(s)
	switch {
	case err != nil:
		return err
	case !k.Alive && !k.Frozen:
		return errors.New("its processes are gone")
	case k.Frozen && (saved == nil || cfg.Body == nil || !a.cfg.Shelf.Has(k.ID)):
		return errors.New("it is frozen, and its image is missing")
	case k.Frozen:
		// Of what is frozen this only makes the image whole, should it not be.
		freeze := cfg.Body.Freeze
		if saved.Files {
			freeze = cfg.Body.FreezeFiles
		}
		if err := freeze(ctx, a.cfg.Shelf.Path(k.ID)); err != nil {
			return fmt.Errorf("it is frozen, and its image is not whole: %w", err)
		}
		s.waits = suspend.TakeOver(a.remover.background.ctx, cfg, *saved)
		return nil
	case saved != nil:
		if err := a.takeBack(ctx, s, cfg.Body, saved); err != nil {
			return err
		}
	}
	s.waits = suspend.TakeOverRunning(a.remover.background.ctx, cfg)
	return nil
}

// takeBack takes back a sandbox that runs though the previous daemon was freezing or
// thawing it: what is left of an image is dropped.
func (a *adopter) takeBack(ctx context.Context, s *Sandbox, body suspend.Body, saved *suspend.Saved) error {
	a.cfg.Log.Warn("a freeze or thaw was interrupted by the daemon's end; the sandbox runs", "sandbox", s.info.ID)
	if body != nil {
		// Of what runs this only makes sure that the keeper knows its processes.
		if err := body.Thaw(ctx, a.cfg.Shelf.Path(s.info.ID)); err != nil {
			return fmt.Errorf("its thaw was interrupted: %w", err)
		}
	}
	if saved.Files { // it may have been started anew, and not been told who it is
		if err := a.assembly.guests.configureAnew(ctx, s); err != nil {
			return fmt.Errorf("its start was interrupted: %w", err)
		}
	}
	return errors.Join(a.cfg.Shelf.Drop(s.info.ID), a.assembly.guests.rememberInfo(ctx, s.info, nil))
}

// newAdopter makes one with its tidier.
func newAdopter(cfg *Config, kept documents, used *keys, joined *assembly) *adopter {
	a := &adopter{
		cfg: cfg, documents: kept, registry: joined.remover.registry, keys: used, tracker: joined.tracker, assembly: joined, remover: joined.remover,
	}
	a.tidier = recovery.New(recovery.Config{
		Sandboxes: a, Keeper: cfg.Keeper, Engines: cfg.Engines, Shelf: cfg.Shelf, Door: cfg.Door, Journal: joined.tracker.journal, Log: cfg.Log,
	})
	return a
}
