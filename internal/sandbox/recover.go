package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/waiting"
	"github.com/cofferdam-dev/cofferdam/internal/wholefile"
)

// adoptsAtOnce is how many sandboxes are taken over at one time: it is waiting for
// the keeper and the disk, for the most part.
const adoptsAtOnce = 16

// Recover adopts the sandboxes that the keeper holds and sweeps away what no
// longer lives, or was not whole when the daemon before died: what it was making or
// taking away. Called once, before the first Create.
func (m *Manager) Recover(ctx context.Context) error {
	faultpoint.Hit(faultpoint.RecoverBegun)
	entries, err := m.journal.Entries(ctx)
	if err != nil {
		return err
	}
	known := map[string]Entry{}
	for _, e := range entries {
		known[e.Info.ID] = e
	}
	held, err := m.cfg.Keeper.List(ctx)
	if err != nil {
		return err
	}
	inParallel(adoptsAtOnce, held, func(k keeper.Sandbox) {
		e, journaled := known[k.ID]
		if err := m.adopt(ctx, k, e, journaled); err != nil {
			m.cfg.Log.Warn("a sandbox can't be adopted and is swept away", "sandbox", k.ID, "err", err)
			m.giveUp(ctx, k, e, journaled, err.Error())
		}
	})
	m.reconcile(ctx, keeperEnded)
	m.stay(m.keepTidy)
	faultpoint.Hit(faultpoint.RecoverDone)
	return nil
}

// keeperEnded is how a sandbox ended of which the keeper knows nothing.
const keeperEnded = "its keeper ended, and the sandbox with it"

// giveUp takes away what can't be adopted. What fails is tried again by the next
// reconcile.
func (m *Manager) giveUp(ctx context.Context, k keeper.Sandbox, e Entry, journaled bool, reason string) {
	m.sweep(ctx, k)
	if !journaled {
		m.lost(ctx, k.ID, reason)
		return
	}
	if err := m.bury(ctx, e, reason); err != nil {
		m.cfg.Log.Error("the end of a sandbox can't be completed; it is tried again", "sandbox", k.ID, "err", err)
	}
}

// lost puts the end of a sandbox on record that was swept away, if that is not
// there.
func (m *Manager) lost(ctx context.Context, id, reason string) {
	if err := m.cfg.Door.SandboxLost(ctx, id, reason); err != nil {
		m.cfg.Log.Error("a sandbox's end is not on record", "sandbox", id, "err", err)
	}
}

// interrupted is why a sandbox is not adopted that the daemon before was making or
// taking away.
func interrupted(s State) error {
	switch s { //nolint:exhaustive // the others live
	case Creating:
		return errors.New("the daemon died while it was being created, so nobody knows of it")
	case Destroying, Destroyed:
		return errors.New("destroyed")
	case Failed:
		return errors.New("it had failed")
	}
	return nil
}

// adopt takes a living, paused or frozen sandbox back and follows its commands.
func (m *Manager) adopt(ctx context.Context, k keeper.Sandbox, e Entry, journaled bool) error {
	if err := interrupted(e.State); journaled && err != nil {
		return err
	}
	var meta kept
	if err := json.Unmarshal(k.Meta, &meta); err != nil || meta.ID != k.ID {
		return fmt.Errorf("its meta is not ours: %w", errors.Join(err, fault.ErrInvalid))
	}
	info := meta.Info
	if journaled {
		info = e.Info
	}
	s, err := m.reopen(ctx, info, e.First)
	if err != nil {
		return err
	}
	s.key, s.request, s.first = e.Key, e.Request, m.cfg.Door.FirstRecord(info.ID)
	s.told, s.written = e.State, e.State
	left := info.Lifetime.TTL
	if journaled {
		s.lifetime, left = e.Clock.Lifetime, e.Clock.LeftAt(m.cfg.Boot())
	}
	m.ends.Start(info.ID, terms(s.lifetime), left) // the list tells whether it stands still
	if err := m.takeOver(ctx, s, k, meta.Waiting); err != nil {
		m.ends.Drop(info.ID)
		m.cfg.Door.Unregister(info.ID)
		return err
	}
	m.adopted(ctx, s)
	s.commands.FollowAgain(ctx, k.Commands)
	if why := m.cfg.Door.MustEnd(info.ID); why != "" {
		m.endFor(s, why)
	}
	m.ends.Announce(info.ID) // now it can be found, and whether it is busy is known
	return nil
}

// reopen makes a sandbox of what is known of it.
func (m *Manager) reopen(ctx context.Context, info Info, first uint64) (*Sandbox, error) {
	p, err := m.loadPolicy(info.PolicyDigest)
	if err != nil {
		return nil, err
	}
	lock, err := m.loadLock(info.LockDigest)
	if err != nil {
		return nil, err
	}
	eng, ok := m.cfg.Engines[info.Engine]
	if !ok {
		return nil, fmt.Errorf("there is no engine %q any more", info.Engine)
	}
	inst, err := eng.Open(ctx, info.Handle)
	if err != nil {
		return nil, err
	}
	run := admission.Run{
		Sandbox: info.ID, Run: info.Run, Task: info.Task, User: info.User, Token: info.Owner.Token,
		Policy: p, Lock: lock, Template: info.Template, Started: info.Created, Plan: info.Plan, Rehearsal: info.Rehearsal, Ancestors: info.Ancestors, First: first, Kept: m.loadPolicy,
	}
	if err := m.cfg.Door.Restore(ctx, run); err != nil {
		return nil, err
	}
	s := m.newSandbox(info, p, inst)
	s.inventory.Distrust()
	s.state = Running
	return s, nil
}

// adopted makes a sandbox that was taken over known. The journal has its state as it
// is: what the daemon before was about is over.
func (m *Manager) adopted(ctx context.Context, s *Sandbox) {
	s.turn.Lock()
	state, _ := s.State()
	if s.told != state {
		m.correct(ctx, s, state, "a new daemon took it over")
	}
	s.turn.Unlock()
	m.quotas.Put(s.info.ID, shareOf(s.info), state == Paused)
	m.remind(s)
	m.add(s)
	if err := m.cfg.Door.SandboxAdopted(ctx, s.info.ID, string(state)); err != nil {
		m.cfg.Log.Error("that a sandbox was taken over is not on record", "sandbox", s.info.ID, "run", s.info.Run, "err", err)
	}
	faultpoint.Hit(faultpoint.RecoverAdopted)
}

// takeOver finds out whether the sandbox runs or is frozen. The keeper knows: a
// freeze or thaw that it has begun it ends, whatever becomes of the daemon.
func (m *Manager) takeOver(ctx context.Context, s *Sandbox, k keeper.Sandbox, saved *waiting.Saved) error {
	k, err := m.rested(ctx, k)
	cfg := m.waitsOf(s)
	switch {
	case err != nil:
		return err
	case !k.Alive && !k.Frozen:
		return errors.New("its processes are gone")
	case k.Frozen && (saved == nil || cfg.Body == nil || !m.cfg.Shelf.Has(k.ID)):
		return errors.New("it is frozen, and there is no image of it")
	case k.Frozen:
		// Of what is frozen this only makes the image whole, should it not be.
		freeze := cfg.Body.Freeze
		if saved.Files {
			freeze = cfg.Body.FreezeFiles
		}
		if err := freeze(ctx, m.cfg.Shelf.Path(k.ID)); err != nil {
			return fmt.Errorf("it is frozen, and its image is not whole: %w", err)
		}
		s.waits = waiting.TakeOver(m.ctx, cfg, *saved)
		return nil
	case saved != nil:
		if err := m.takeBack(ctx, s, cfg.Body, saved); err != nil {
			return err
		}
	}
	s.waits = waiting.TakeOverRunning(m.ctx, cfg)
	return nil
}

// takeBack is for a sandbox that runs though the previous daemon was freezing or
// thawing it: what is left of an image is dropped.
func (m *Manager) takeBack(ctx context.Context, s *Sandbox, body waiting.Body, saved *waiting.Saved) error {
	m.cfg.Log.Warn("a freeze or thaw was interrupted by the daemon's end; the sandbox runs", "sandbox", s.info.ID)
	if body != nil {
		// Of what runs this only makes sure that the keeper knows its processes.
		if err := body.Thaw(ctx, m.cfg.Shelf.Path(s.info.ID)); err != nil {
			return fmt.Errorf("its thaw was interrupted: %w", err)
		}
	}
	if saved.Files { // it may have been started anew, and not been told who it is
		if err := m.beginAnew(ctx, s); err != nil {
			return fmt.Errorf("its start was interrupted: %w", err)
		}
	}
	return errors.Join(m.cfg.Shelf.Drop(s.info.ID), m.remember(ctx, s.info, nil))
}

// How a freeze or thaw that outlived its daemon is waited for.
const (
	movePatience = 6 * time.Minute // longer than the keeper gives its slowest step
	movePoll     = 50 * time.Millisecond
)

// rested waits until the keeper neither freezes nor thaws the sandbox.
func (m *Manager) rested(ctx context.Context, k keeper.Sandbox) (keeper.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, movePatience)
	defer cancel()
	tick := time.NewTicker(movePoll)
	defer tick.Stop()
	for k.Moving {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return k, fmt.Errorf("its freeze or thaw does not end: %w", ctx.Err())
		}
		var err error
		if k, err = m.cfg.Keeper.Get(ctx, k.ID); err != nil {
			return k, err
		}
	}
	return k, nil
}

// sweep takes away what the keeper still holds of a sandbox that can't be
// adopted.
func (m *Manager) sweep(ctx context.Context, k keeper.Sandbox) {
	if k.Alive {
		if err := m.cfg.Keeper.Kill(ctx, k.ID); err != nil {
			m.cfg.Log.Error("a sandbox can't be killed", "sandbox", k.ID, "err", err)
		}
	}
	for _, eng := range m.cfg.Engines {
		if err := eng.Sweep(ctx, k.ID); err != nil {
			m.cfg.Log.Error("the remains of a sandbox can't be swept away", "sandbox", k.ID, "err", err)
		}
	}
	if err := m.cfg.Keeper.Forget(ctx, k.ID); err != nil && !errors.Is(err, fault.ErrNotFound) {
		m.cfg.Log.Error("the keeper can't forget a sandbox", "sandbox", k.ID, "err", err)
	}
}

// keepPolicy stores the document under its digest, so that a restarted daemon
// and `policy suggest` find it.
func (m *Manager) keepPolicy(req Request) error {
	return m.keepText(req.Policy.Digest(), req.PolicyText)
}

func (m *Manager) keepText(digest string, text []byte) error {
	path := m.policyPath(digest)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := wholefile.Replace(path, text, 0o600); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the policy can't be kept in %s", m.cfg.PolicyDir)
	}
	return nil
}

func (m *Manager) policyPath(digest string) string {
	return filepath.Join(m.cfg.PolicyDir, strings.TrimPrefix(digest, "sha256:")+".yaml")
}

// PolicyText returns the document of a digest, or fault.ErrNotFound.
func (m *Manager) PolicyText(digest string) ([]byte, error) {
	data, err := os.ReadFile(m.policyPath(digest))
	if err != nil {
		return nil, fault.Wrap(fault.ErrNotFound, err, "the policy %s is not kept any more", digest)
	}
	return data, nil
}

func (m *Manager) loadPolicy(digest string) (*policy.Policy, error) {
	data, err := m.PolicyText(digest)
	if err != nil {
		return nil, err
	}
	p, err := policy.Parse(digest, data)
	if err != nil {
		return nil, err
	}
	if p.Digest() != digest {
		return nil, fault.New(fault.ErrConflict, "the kept policy %s has another digest now", digest)
	}
	return p, nil
}
