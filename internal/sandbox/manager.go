package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/copies"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/ends"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/inventory"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/mounts"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/pool"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/quota"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/snapshots"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/waiting"
	"github.com/cofferdam-dev/cofferdam/internal/template"
)

// Config is what a Manager works with. All fields are needed that don't say what
// their zero value means.
type Config struct {
	Engines       map[string]engine.Engine
	DefaultEngine string
	Keeper        *keeper.Client
	Templates     templates
	Door          *admission.Controller
	// Trust gives the CA certificate for new sandboxes and the host names that
	// the gateway answers for; it waits until they are known.
	Trust func(ctx context.Context) (caPEM []byte, names []string, err error)
	// ClientSettings are the variables that package clients have in every sandbox; a
	// template's own and all others go over them.
	ClientSettings map[string]string
	// ClientEnv tells clients which registry to ask where it is not the one that
	// they ask by themselves.
	ClientEnv func() map[string]string
	// AgentDir holds the guest agent's files, shown inside read-only.
	AgentDir string
	// EmptyFile lies over hidden files.
	EmptyFile string
	// Own are the installation's directories, never to be mounted.
	Own []string
	// PolicyDir keeps each policy document under its digest.
	PolicyDir string
	// BaselineDir keeps what each template brings, by the template's digest.
	BaselineDir     string
	DefaultTemplate string
	// Queue tells what people have not answered yet; Shelf is where frozen
	// sandboxes lie, and FreezeAfter how long a person has before one is frozen.
	Queue       waiting.Queue
	Shelf       *waiting.Shelf
	FreezeAfter time.Duration
	// Snapshots is where copies of sandboxes lie; nil: there are none, and none are
	// made.
	Snapshots *snapshots.Store
	Log       *slog.Logger
	// Observer is told what is done with sandboxes; nil: nobody is.
	Observer Observer
	// Journal is what the next daemon finds them by; nil: one that ends with this
	// process.
	Journal Journal
	// Reserve is how many bytes of disk must be free for another sandbox; 0: 256 MiB.
	Reserve int64
	// EndRetry is how long after it failed for the first time the taking away of a
	// sandbox is tried again; 0: a second.
	EndRetry time.Duration
	// Boot tells which boot of the machine this is and how long it is since; nil: the
	// kernel is asked.
	Boot func() (boot string, since time.Duration)
}

// templates is what the manager needs of the template store.
type templates interface {
	Get(ctx context.Context, name string) (template.Template, error)
	// Generation returns the template of a name with this digest, which need not be
	// the current one.
	Generation(ctx context.Context, name, digest string) (template.Template, error)
}

// Manager owns the sandboxes of a daemon. Safe for concurrent use.
type Manager struct {
	cfg   Config
	rules mounts.Rules

	mu        sync.Mutex // guards what follows
	sandboxes map[string]*Sandbox
	members   map[string]engine.Instance // of the pool, by id
	making    map[string]int             // ids of what is being made: the sweeps leave them alone
	promises  map[string]*promise        // by owner and idempotency key
	laws      map[string]*policy.Policy  // by source: what narrows those that began under another document of it

	journal    *journal.Feed
	inventory  *inventory.Book
	commands   *commands.Runner
	blueprints *copies.Blueprints
	copies     *copies.Library
	pool       *pool.Pool
	ends       *ends.Schedule
	quotas     *quota.Book
	gate       *gate
	crew       *crew // ends and writes in the background

	tidying    sync.Mutex      // held while reconciling
	background sync.WaitGroup  // watchers; Close waits for them
	ctx        context.Context //nolint:containedctx // the manager's own life, cancelled by Close: watchers outlive any request
	cancel     context.CancelFunc
}

// New makes a manager without sandboxes; Recover finds those that live.
func New(cfg Config) *Manager {
	ctx, cancel := context.WithCancel(context.Background())
	if cfg.Journal == nil {
		cfg.Journal = journal.NewMemory()
	}
	if cfg.Boot == nil {
		cfg.Boot = sinceBoot
	}
	m := &Manager{
		cfg: cfg, rules: mounts.Rules{Own: cfg.Own, EmptyFile: cfg.EmptyFile},
		sandboxes: map[string]*Sandbox{}, members: map[string]engine.Instance{},
		making: map[string]int{}, promises: map[string]*promise{},
		quotas:    quota.NewBook(),
		inventory: inventory.NewBook(inventory.Config{Keeper: cfg.Keeper, Door: cfg.Door, Dir: cfg.BaselineDir, Log: cfg.Log}),
		gate:      newGate(cfg.PolicyDir, cfg.Reserve),
		ctx:       ctx, cancel: cancel,
	}
	m.journal = journal.NewFeed(ctx, &m.background, cfg.Journal, cfg.Log)
	m.commands = commands.NewRunner(ctx, &m.background, commands.Config{Keeper: cfg.Keeper, Door: cfg.Door, Log: cfg.Log})
	m.blueprints = copies.NewBlueprints(cfg.BaselineDir, cfg.AgentDir, cfg.Log)
	m.copies = copies.NewLibrary(copies.Config{
		Store: cfg.Snapshots, Blueprints: m.blueprints, Engines: cfg.Engines, Keeper: cfg.Keeper, Door: cfg.Door, Rules: m.rules, AgentDir: cfg.AgentDir, Log: cfg.Log,
	})
	m.ends = ends.New(m.expired)
	m.crew = newCrew(func(work func()) { errand.In(&m.background, work) }, endsAtOnce)
	m.stay(func() { m.ends.Run(ctx) })
	m.pool = pool.New(members{m}, cfg.Log)
	m.stay(func() { m.pool.Run(ctx) })
	if cfg.Snapshots != nil {
		m.stay(func() { cfg.Snapshots.Tend(ctx) })
	}
	for _, eng := range cfg.Engines {
		if t, ok := eng.(engine.Tender); ok {
			m.stay(func() { t.Tend(ctx) })
		}
	}
	return m
}

// stay does in the background what goes on until Close.
func (m *Manager) stay(do func()) {
	errand.In(&m.background, func() { errand.Stay(m.ctx, do) })
}

// Close ends the manager's watchers. Sandboxes live on in the keeper, the frozen
// ones on disk; a freeze that has begun is ended first.
func (m *Manager) Close() {
	m.cancel()
	for _, s := range m.List() {
		s.waits.Wait()
	}
	m.background.Wait()
}

// Get returns a sandbox, or fault.ErrNotFound.
func (m *Manager) Get(id string) (*Sandbox, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sandboxes[id]
	if !ok {
		return nil, fault.New(fault.ErrNotFound, "there is no sandbox %q", id)
	}
	return s, nil
}

// List returns all sandboxes, oldest first.
func (m *Manager) List() []*Sandbox {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*Sandbox, 0, len(m.sandboxes))
	for _, s := range m.sandboxes {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Sandbox) int { return a.info.Created.Compare(b.info.Created) })
	return all
}

// Uses reports whether a sandbox runs on the template with this digest, or a
// snapshot is of one.
func (m *Manager) Uses(digest string) bool {
	if m.cfg.Snapshots != nil && m.cfg.Snapshots.Uses(digest) {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sandboxes {
		if s.info.Digest == digest {
			return true
		}
	}
	return false
}

// Events returns a channel of what happens from after the event with the number on; see
// journal.Feed.
func (m *Manager) Events(ctx context.Context, after int64) (<-chan Event, error) {
	return m.journal.Follow(ctx, after)
}

// Count is how many sandboxes there are or are being made, for the idle daemon.
func (m *Manager) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sandboxes) + len(m.making)
}

// add makes a sandbox known and watches its end.
func (m *Manager) add(s *Sandbox) {
	m.mu.Lock()
	m.sandboxes[s.info.ID] = s
	m.mu.Unlock()
	errand.In(&m.background, func() { m.watch(s) })
}

// Destroy ends a sandbox and takes it away; it returns when nothing is left.
// A second Destroy waits for the first. What could not be taken away is tried again,
// with pauses that grow, until it is; Sandbox.Stuck tells of it meanwhile.
func (m *Manager) Destroy(ctx context.Context, id string) (err error) {
	ctx, done := m.observe(ctx, VerbDestroy, id)
	defer func() { done(nil, "", err) }()
	s, err := m.Get(id)
	if err != nil {
		return err
	}
	return m.end(ctx, s, "destroyed")
}

// remove destroys the instance, writes the record and forgets the sandbox. An end
// that could not be recorded stays in the journal, for the next reconcile.
func (m *Manager) remove(ctx context.Context, s *Sandbox, reason string) error {
	s.waits.Close()
	faultpoint.Hit(faultpoint.DestroyQuiet)
	s.commands.SettleAll(ctx)
	faultpoint.Hit(faultpoint.DestroySettled)
	if err := s.instance.Destroy(ctx); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the sandbox %s can't be taken away; it is tried again, and `cofferdam doctor` and the daemon's log say more", s.info.ID)
	}
	s.commands.SettleCut(ctx)
	faultpoint.Hit(faultpoint.DestroyGone)
	if err := m.cfg.Shelf.Drop(s.info.ID); err != nil {
		m.cfg.Log.Error("the image of a frozen sandbox can't be removed", "sandbox", s.info.ID, "err", err)
	}
	faultpoint.Hit(faultpoint.DestroyDropped)
	recorded := m.cfg.Door.SandboxEnded(ctx, s.info.ID, reason)
	if recorded != nil {
		m.cfg.Log.Error("a sandbox's end is not on record; it is tried again", "sandbox", s.info.ID, "run", s.info.Run, "err", recorded)
	}
	faultpoint.Hit(faultpoint.DestroyRecorded)
	m.cfg.Door.Unregister(s.info.ID)
	m.forgetFiles(s.info.ID)
	if recorded != nil {
		s.setState(Destroyed)
	} else if err := m.enter(ctx, s, Destroyed, reason); err != nil {
		m.cfg.Log.Error("a sandbox's end is not in order", "sandbox", s.info.ID, "run", s.info.Run, "err", err)
	}
	faultpoint.Hit(faultpoint.DestroyForgotten)
	m.forget(s)
	return nil
}

// forgetFiles removes what is kept of a sandbox beside its journal.
func (m *Manager) forgetFiles(id string) {
	m.blueprints.Forget(id)
	m.inventory.Forget(id)
}

// forget lets go all that is kept of a sandbox that is gone.
func (m *Manager) forget(s *Sandbox) {
	m.ends.Drop(s.info.ID)
	m.quotas.Drop(s.info.ID)
	m.mu.Lock()
	delete(m.sandboxes, s.info.ID)
	m.forgetKey(s)
	m.mu.Unlock()
	close(s.gone)
}

// Cut ends a sandbox whose run has used up its quota of records. It returns at
// once.
func (m *Manager) Cut(id string) {
	errand.In(&m.background, func() {
		m.cfg.Log.Warn("a run used up its quota of records; its sandbox is destroyed", "sandbox", id)
		if err := m.Destroy(m.ctx, id); err != nil {
			m.cfg.Log.Error("a sandbox that was cut can't be destroyed", "sandbox", id, "err", err)
		}
	})
}

// endsAtOnce is how many sandboxes are taken away at one time because their time is
// over.
const endsAtOnce = 8

// ReapAbandoned destroys sandboxes without Linger, lifetime and hold whose client went
// away and whose commands have ended.
func (m *Manager) ReapAbandoned(ctx context.Context) {
	for _, s := range m.List() {
		if !m.abandoned(ctx, s) {
			continue
		}
		m.cfg.Log.Info("a sandbox whose client went away is destroyed", "sandbox", s.info.ID)
		errand.In(&m.background, func() {
			if err := m.Destroy(m.ctx, s.info.ID); err != nil {
				m.cfg.Log.Error("an abandoned sandbox can't be destroyed", "sandbox", s.info.ID, "err", err)
			}
		})
	}
}

func (m *Manager) abandoned(ctx context.Context, s *Sandbox) bool {
	waits := s.waits.View()
	s.mu.Lock()
	quiet := s.state == Running && !s.info.Linger && !s.lifetime.HasEnd() && len(waits.Holds) == 0 && waits.State == waiting.Running
	s.mu.Unlock()
	if !quiet || !s.clients.Gone() {
		return false
	}
	k, err := m.cfg.Keeper.Get(ctx, s.info.ID)
	if err != nil {
		return false
	}
	for _, c := range k.Commands {
		if c.Exit == nil {
			return false
		}
	}
	return true
}

// endFor ends a sandbox for what was found on its disk; it returns at once.
func (m *Manager) endFor(s *Sandbox, why string) {
	errand.In(&m.background, func() {
		m.cfg.Log.Warn("a sandbox is ended, as its policy asks", "sandbox", s.info.ID, "why", why)
		if err := m.Destroy(m.ctx, s.info.ID); err != nil && !errors.Is(err, fault.ErrNotFound) {
			m.cfg.Log.Error("a sandbox that its policy ends can't be destroyed", "sandbox", s.info.ID, "err", err)
		}
	})
}
