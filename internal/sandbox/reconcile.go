package sandbox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// How what there is is compared with what is known.
const (
	reconcileEvery    = time.Minute
	reconcilePatience = 5 * time.Minute
	sweepsAtOnce      = 8
)

// remains is how a sandbox ended of which only something that it left was found.
const remains = "what was left of it was found and taken away"

// keepTidy reconciles every minute until the manager ends.
func (m *Manager) keepTidy() {
	tick := time.NewTicker(reconcileEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-tick.C:
			m.reconcile(m.ctx, remains)
		}
	}
}

// reconcile compares what the keeper, the engines, the shelf and the journal have
// with the sandboxes that are known, and takes away what is nobody's. Each of them
// has only what this installation made. What belongs to a sandbox that is being made
// or taken away is left alone: its id is known before anything of it is there.
func (m *Manager) reconcile(ctx context.Context, reason string) {
	m.tidying.Lock()
	defer m.tidying.Unlock()
	ctx, cancel := context.WithTimeout(ctx, reconcilePatience)
	defer cancel()
	m.settleKeeper(ctx, reason)
	m.sweepEngines(ctx, reason)
	m.settleJournal(ctx, reason)
	if err := m.cfg.Shelf.Sweep(m.knows); err != nil {
		m.cfg.Log.Error("the images of sandboxes that are gone can't be removed", "err", err)
	}
	m.inventory.Sweep(m.knows)
	m.blueprints.Sweep(m.knows)
	for _, s := range m.List() {
		if s.behind() {
			m.rewrite(ctx, s)
		}
	}
}

// behind reports whether the journal lacks the sandbox's state.
func (s *Sandbox) behind() bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.written != s.told
}

// knows reports whether an id is a sandbox's, or will be one's. To be asked after
// what is to be swept was found, never before.
func (m *Manager) knows(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sandboxes[id] != nil || m.making[id] > 0 || m.members[id] != nil
}

// occupy keeps the sweeps from an id until leave is called.
func (m *Manager) occupy(id string) (leave func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.making[id]++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.making[id]--; m.making[id] <= 0 {
			delete(m.making, id)
		}
	}
}

// settleKeeper takes away what the keeper holds and nobody knows, and gives up what
// is known here and the keeper does not hold any more.
func (m *Manager) settleKeeper(ctx context.Context, reason string) {
	known := m.List()
	held, err := m.cfg.Keeper.List(ctx)
	if err != nil {
		m.cfg.Log.Warn("the keeper can't list its sandboxes", "err", err)
		return
	}
	holds := map[string]bool{}
	for _, k := range held {
		holds[k.ID] = true
		if m.knows(k.ID) {
			continue
		}
		m.cfg.Log.Warn("the keeper holds a sandbox that nobody knows; it is taken away", "sandbox", k.ID)
		m.sweep(ctx, k)
		m.lost(ctx, k.ID, reason)
	}
	inParallel(sweepsAtOnce, known, func(s *Sandbox) {
		if !holds[s.info.ID] {
			m.fail(ctx, s, engine.Exit{Code: lostCode, Reason: keeperEnded})
		}
	})
}

// sweepEngines takes away what engines have on the host of sandboxes that nobody
// knows.
func (m *Manager) sweepEngines(ctx context.Context, reason string) {
	for _, eng := range m.cfg.Engines {
		ids, err := eng.List(ctx)
		if err != nil {
			m.cfg.Log.Warn("an engine can't list its sandboxes", "engine", eng.Name(), "err", err)
			continue
		}
		inParallel(sweepsAtOnce, ids, func(id string) {
			if m.knows(id) {
				return
			}
			if err := eng.Sweep(ctx, id); err != nil {
				m.cfg.Log.Error("the remains of a sandbox can't be swept away", "sandbox", id, "err", err)
				return
			}
			m.lost(ctx, id, reason)
		})
	}
}

// settleJournal ends the entries of sandboxes that nobody knows, once nothing is left
// of them and their end is on record.
func (m *Manager) settleJournal(ctx context.Context, reason string) {
	unknown := map[string]bool{}
	for _, e := range m.entries(ctx) {
		unknown[e.Info.ID] = !m.knows(e.Info.ID)
	}
	if !slices.Contains(slices.Collect(maps.Values(unknown)), true) {
		return
	}
	// One that ended as it should after it was read is unknown, too; but it has no
	// entry any more.
	inParallel(sweepsAtOnce, m.entries(ctx), func(e Entry) {
		if !unknown[e.Info.ID] {
			return
		}
		if err := m.bury(ctx, e, reason); err != nil {
			m.cfg.Log.Error("the end of a sandbox can't be completed; it is tried again", "sandbox", e.Info.ID, "run", e.Info.Run, "err", err)
		}
	})
}

// entries are the journal's; none if it can't be read.
func (m *Manager) entries(ctx context.Context) []Entry {
	entries, err := m.journal.Entries(ctx)
	if err != nil {
		m.cfg.Log.Error("the journal of sandboxes can't be read", "err", err)
		return nil
	}
	return entries
}

// bury completes the end of a sandbox of which only the journal knows.
func (m *Manager) bury(ctx context.Context, e Entry, reason string) error {
	if eng := m.cfg.Engines[e.Info.Engine]; eng != nil {
		if err := eng.Sweep(ctx, e.Info.ID); err != nil {
			return err
		}
	}
	if err := m.cfg.Shelf.Drop(e.Info.ID); err != nil {
		return err
	}
	if err := m.cfg.Door.SandboxLostSince(ctx, e.Info.ID, e.First, reason); err != nil {
		return err
	}
	if from := e.State; !from.Ends() {
		e.State = Failed
		if err := m.journal.Enter(ctx, e, from, reason); err != nil {
			return err
		}
	}
	from := e.State
	e.State = Destroyed
	return m.journal.Enter(ctx, e, from, reason)
}

// KeeperEnded is told when the keeper has died and another one answers: the sandboxes
// that died with it failed, and what they left is taken away.
func (m *Manager) KeeperEnded(ctx context.Context) { m.reconcile(ctx, keeperEnded) }

// watchPause is how long a keeper that does not answer is left alone.
const watchPause = time.Second

// watch waits for the instance to end. If nobody asked for that, the sandbox
// failed: it is recorded, and its remains are taken away.
func (m *Manager) watch(s *Sandbox) {
	for {
		exit, err := s.instance.Wait(m.ctx)
		switch {
		case m.ctx.Err() != nil:
			return
		case err == nil:
			m.fail(m.ctx, s, exit)
			return
		case errors.Is(err, fault.ErrNotFound): // another keeper answers
			m.fail(m.ctx, s, engine.Exit{Code: lostCode, Reason: keeperEnded})
			return
		}
		m.cfg.Log.Warn("a sandbox can't be watched; it is tried again", "sandbox", s.info.ID, "run", s.info.Run, "err", err)
		select {
		case <-m.ctx.Done():
			return
		case <-s.gone:
			return
		case <-time.After(watchPause):
		}
	}
}
