// Package recovery makes what there is agree with what is known, after a daemon died and
// ever since: the keeper and the engines say what there is, the journal what was meant.
//
// A daemon adopts the sandboxes of the daemon before it, and completes the removal of those that
// were being removed.
package recovery

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// How what there is is compared with what is known.
const (
	every        = time.Minute
	timeLimit    = 5 * time.Minute
	sweepsAtOnce = 8
)

// Why a sandbox ended that nobody took away.
const (
	// KeeperEnded is of one of which the keeper knows nothing.
	KeeperEnded = "its keeper ended, and the sandbox with it"
	// remains is of one of which only something that it left was found.
	remains = "what was left of it was found and taken away"
)

// Sandboxes are those that the daemon has.
type Sandboxes interface {
	// Knows reports whether an id is a sandbox's, or will be one's. It is asked after
	// what is to be swept was found, never before.
	Knows(id string) bool
	// IDs are those of all sandboxes.
	IDs() []string
	// Lost is told of one that the keeper does not hold any more.
	Lost(ctx context.Context, id, reason string)
	// Tidy takes away files of sandboxes that are gone, and writes what the journal lacks.
	Tidy(ctx context.Context)
}

// Config is what a Tidier works with. All fields are needed.
type Config struct {
	Sandboxes Sandboxes
	Keeper    *keeper.Client
	Engines   map[string]engine.Engine
	Shelf     *suspend.Shelf
	Door      *admission.Controller
	Journal   *journal.Feed
	Log       *slog.Logger
}

// Tidier takes away what is nobody's. Safe for concurrent use.
type Tidier struct {
	cfg Config
	one sync.Mutex // held while reconciling
}

// New makes one that does nothing by itself.
func New(cfg Config) *Tidier { return &Tidier{cfg: cfg} }

// Keep reconciles every minute until ctx ends.
func (t *Tidier) Keep(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.Reconcile(ctx, remains)
		}
	}
}

// Reconcile compares what the keeper, the engines, the shelf and the journal have with the
// sandboxes that are known, and takes away what is nobody's. Each of them has only what this
// installation made. The parts of a sandbox that is being made or taken away are left alone: its id
// is known before anything of it is there.
func (t *Tidier) Reconcile(ctx context.Context, reason string) {
	t.one.Lock()
	defer t.one.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	t.settleKeeper(ctx, reason)
	t.sweepEngines(ctx, reason)
	t.settleJournal(ctx, reason)
	if err := t.cfg.Shelf.Sweep(t.cfg.Sandboxes.Knows); err != nil {
		t.cfg.Log.Error("the images of sandboxes that are gone can't be removed", "err", err)
	}
	t.cfg.Sandboxes.Tidy(ctx)
}

// settleKeeper takes away what the keeper holds and nobody knows, and gives up what
// is known here and the keeper does not hold any more.
func (t *Tidier) settleKeeper(ctx context.Context, reason string) {
	known := t.cfg.Sandboxes.IDs()
	held, err := t.cfg.Keeper.List(ctx)
	if err != nil {
		t.cfg.Log.Warn("the keeper can't list its sandboxes", "err", err)
		return
	}
	holds := map[string]bool{}
	for _, k := range held {
		holds[k.ID] = true
		if t.cfg.Sandboxes.Knows(k.ID) {
			continue
		}
		t.cfg.Log.Warn("the keeper holds a sandbox that nobody knows; it is taken away", "sandbox", k.ID)
		t.sweepSandbox(ctx, k)
		t.recordLost(ctx, k.ID, reason)
	}
	inParallel(sweepsAtOnce, known, func(id string) {
		if !holds[id] {
			t.cfg.Sandboxes.Lost(ctx, id, KeeperEnded)
		}
	})
}

// sweepEngines takes away what engines have on the host of sandboxes that nobody
// knows.
func (t *Tidier) sweepEngines(ctx context.Context, reason string) {
	for _, eng := range t.cfg.Engines {
		ids, err := eng.List(ctx)
		if err != nil {
			t.cfg.Log.Warn("an engine can't list its sandboxes", "engine", eng.Name(), "err", err)
			continue
		}
		inParallel(sweepsAtOnce, ids, func(id string) {
			if t.cfg.Sandboxes.Knows(id) {
				return
			}
			if err := eng.Sweep(ctx, id); err != nil {
				t.cfg.Log.Error("the remains of a sandbox can't be swept away", "sandbox", id, "err", err)
				return
			}
			t.recordLost(ctx, id, reason)
		})
	}
}

// settleJournal ends the entries of sandboxes that nobody knows, once nothing is left
// of them and their end is on record.
func (t *Tidier) settleJournal(ctx context.Context, reason string) {
	unknown := map[string]bool{}
	for _, e := range t.entries(ctx) {
		unknown[e.Info.ID] = !t.cfg.Sandboxes.Knows(e.Info.ID)
	}
	if !slices.Contains(slices.Collect(maps.Values(unknown)), true) {
		return
	}
	// One that ended as it should after it was read is unknown, too; but it has no
	// entry any more.
	inParallel(sweepsAtOnce, t.entries(ctx), func(e journal.Entry) {
		if !unknown[e.Info.ID] {
			return
		}
		if err := t.completeEnd(ctx, e, reason); err != nil {
			t.cfg.Log.Error("the end of a sandbox can't be completed; it is tried again", "sandbox", e.Info.ID, "run", e.Info.Run, "err", err)
		}
	})
}

// entries are the journal's; none if it can't be read.
func (t *Tidier) entries(ctx context.Context) []journal.Entry {
	entries, err := t.cfg.Journal.Entries(ctx)
	if err != nil {
		t.cfg.Log.Error("the journal of sandboxes can't be read", "err", err)
		return nil
	}
	return entries
}

// completeEnd does what is left of the end of a sandbox of which only the journal knows.
func (t *Tidier) completeEnd(ctx context.Context, e journal.Entry, reason string) error {
	if eng := t.cfg.Engines[e.Info.Engine]; eng != nil {
		if err := eng.Sweep(ctx, e.Info.ID); err != nil {
			return err
		}
	}
	if err := t.cfg.Shelf.Drop(e.Info.ID); err != nil {
		return err
	}
	if err := t.cfg.Door.SandboxLostSince(ctx, e.Info.ID, e.First, reason); err != nil {
		return err
	}
	if from := e.State; !from.Ends() {
		e.State = journal.Failed
		if err := t.cfg.Journal.Enter(ctx, e, from, reason); err != nil {
			return err
		}
	}
	from := e.State
	e.State = journal.Destroyed
	return t.cfg.Journal.Enter(ctx, e, from, reason)
}

// recordLost puts the end of a sandbox on record that was swept away, if that is not
// there.
func (t *Tidier) recordLost(ctx context.Context, id, reason string) {
	if err := t.cfg.Door.SandboxLost(ctx, id, reason); err != nil {
		t.cfg.Log.Error("a sandbox's end is not on record", "sandbox", id, "err", err)
	}
}

// inParallel does a thing with each, so many at one time, and returns when all is
// done.
func inParallel[T any](most int, all []T, do func(T)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, most)
	for _, one := range all {
		slots <- struct{}{}
		safego.In(&group, func() {
			defer func() { <-slots }()
			do(one)
		})
	}
	group.Wait()
}
