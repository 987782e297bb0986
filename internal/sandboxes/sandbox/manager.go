package sandbox

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/baseline"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/copies"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/expiry"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/outputscan"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/pool"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/quota"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/recovery"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// endsAtOnce is how many sandboxes are taken away at one time because their time is
// over.
const endsAtOnce = 8

// readsAtOnce is how many requests' lockfiles are read at one time, of one owner half of them.
const readsAtOnce = 2

// Manager owns the sandboxes of a daemon. It is composed of those who each do one thing
// with them. Safe for concurrent use.
type Manager struct {
	*inside
	*pauser

	cfg          *Config
	registry     *registry
	documents    documents
	spans        spans
	tracker      *tracker
	copies       *copies.Library
	planner      *planner
	ready        *ready
	creator      *creator
	remover      *remover
	replacements *replacements
	adopter      *adopter
	background   *background
}

// New makes a manager without sandboxes; Recover finds those that live.
func New(given Config) *Manager {
	cfg := &given
	cfg.fillDefaults()
	b, scans := newBackground(endsAtOnce), outputscan.New(cfg.Scans, cfg.Door, cfg.Hold)
	known, keys := newRegistry(), newKeys()
	times := &lifetimes{cfg: cfg, registry: known, background: b}
	m := &Manager{
		cfg: cfg, registry: known, background: b, documents: newDocuments(cfg.PolicyDir), spans: spans{cfg.Observer, known},
		inside: &inside{cfg: cfg, registry: known, background: b, outgoing: scans}, ready: newReady(cfg, known, b), replacements: newReplacements(cfg.Door, known),
		tracker: &tracker{
			journal: journal.NewFeed(b.ctx, &b.group, cfg.Journal, cfg.Log), ends: expiry.New(times.expired), quotas: quota.NewBook(cfg.Host),
			boot: cfg.Boot, background: b, log: cfg.Log,
		},
	}
	blueprints := copies.NewBlueprints(cfg.BaselineDir, cfg.AgentDir, cfg.Written, cfg.Log)
	rules := mountpolicy.Rules{Own: cfg.Own, EmptyFile: cfg.EmptyFile, Writable: blueprints.Writable, Hidden: cfg.Hidden, Seen: cfg.Seen, Projects: cfg.Projects, Copies: cfg.Copies, Programs: cfg.Programs, ToolHomes: cfg.ToolHomes, OwnPrograms: cfg.OwnPrograms}
	m.copies = copies.NewLibrary(copies.Config{
		Store: cfg.Snapshots, Blueprints: blueprints, Engines: cfg.Engines, Keeper: cfg.Keeper, Door: cfg.Door, Rules: rules, AgentDir: cfg.AgentDir, Log: cfg.Log,
	})
	m.planner = &planner{cfg: cfg, engines: cfg.Engines, documents: m.documents, rules: rules, copies: m.copies, reading: fairqueue.New(fairqueue.Fair(readsAtOnce, createLine))}
	m.remover = &remover{
		cfg: cfg, registry: known, spans: m.spans, tracker: m.tracker, keys: keys, blueprints: blueprints, documents: m.documents, copies: m.copies, background: b,
		inventory: baseline.NewBook(baseline.Config{Keeper: cfg.Keeper, Door: cfg.Door, Dir: cfg.BaselineDir, Log: cfg.Log}),
	}
	agents := &guestCaller{cfg: cfg, blueprints: blueprints, rules: rules}
	joined := &assembly{
		cfg: cfg, tracker: m.tracker, remover: m.remover, guests: agents, inventory: m.remover.inventory,
		commands: commands.NewRunner(b.ctx, &b.group, commands.Config{Keeper: cfg.Keeper, Door: cfg.Door, Outgoing: scans, Log: cfg.Log}),
	}
	m.pauser = &pauser{cfg: cfg, registry: known, spans: m.spans, engines: cfg.Engines, guests: agents, tracker: m.tracker}
	times.tracker, times.remover, times.pauser = m.tracker, m.remover, m.pauser
	m.creator = &creator{
		cfg: cfg, spans: m.spans, keys: keys, gate: newGate(cfg.PolicyDir, cfg.Reserve), planner: m.planner, documents: m.documents, registry: known,
		tracker: m.tracker, ready: m.ready, assembly: joined, guests: agents, remover: m.remover, replacements: m.replacements,
	}
	m.adopter = newAdopter(cfg, m.documents, keys, joined)
	m.tendAll()
	return m
}

// tendAll begins what goes on until Close.
func (m *Manager) tendAll() {
	ctx := m.background.ctx
	m.background.stayInBackground(func() { m.tracker.ends.Run(ctx) })
	m.background.stayInBackground(func() { m.ready.pool.Run(ctx) })
	if m.cfg.Homes != nil {
		m.background.stayInBackground(func() { m.remover.tendHomes(ctx) })
	}
	if m.cfg.Snapshots != nil {
		m.background.stayInBackground(func() { m.cfg.Snapshots.Tend(ctx) })
	}
	for _, eng := range m.cfg.Engines {
		if t, ok := eng.(engine.Maintainer); ok {
			m.background.stayInBackground(func() { t.Tend(ctx) })
		}
	}
}

// Recover adopts the sandboxes that the keeper holds and sweeps away what no
// longer lives, or was not whole when the daemon before died: what it was making or
// taking away. Called once, before the first Create.
func (m *Manager) Recover(ctx context.Context) error {
	if err := m.adopter.tidier.Recover(ctx, m.adopter.adoptSandbox); err != nil {
		return err
	}
	m.background.stayInBackground(func() { m.adopter.tidier.Keep(m.background.ctx) })
	faultpoint.Hit(faultpoint.RecoverDone)
	return nil
}

// KeeperEnded is told when the keeper has died and another one answers: the sandboxes
// that died with it failed, and what they left is taken away.
func (m *Manager) KeeperEnded(ctx context.Context) {
	m.adopter.tidier.Reconcile(ctx, recovery.KeeperEnded)
}

// Close ends the manager's watchers. Sandboxes live on in the keeper, the frozen
// ones on disk; a freeze that has begun is ended first.
func (m *Manager) Close() {
	m.background.cancel()
	for _, s := range m.List() {
		s.waits.Wait()
	}
	m.background.group.Wait()
}

// Follows reports whether a command or a cell of a sandbox is followed to its end, which is
// on record then.
func (m *Manager) Follows(sandbox, command string) bool {
	s, err := m.registry.getSandbox(sandbox)
	return err == nil && command != "" && s.commands.Has(command)
}

// Tends reports whether the end of a sandbox is the manager's to tell: it has it, or makes it, or the
// journal has it, so that it is taken away if it can't be taken over. A journal that can't be read may
// have any.
func (m *Manager) Tends(ctx context.Context, id string) bool {
	if m.registry.knowsID(id) {
		return true
	}
	entries, err := m.tracker.journal.Entries(ctx)
	return err != nil || slices.ContainsFunc(entries, func(e Entry) bool { return e.Info.ID == id })
}

// Get returns a sandbox, or fault.ErrNotFound.
func (m *Manager) Get(id string) (*Sandbox, error) { return m.registry.getSandbox(id) }

// List returns all sandboxes, oldest first.
func (m *Manager) List() []*Sandbox { return m.registry.listSandboxes() }

// Uses reports whether a sandbox runs on the template with this digest, or a
// snapshot is of one.
func (m *Manager) Uses(digest string) bool {
	if m.cfg.Snapshots != nil && m.cfg.Snapshots.Uses(digest) {
		return true
	}
	for _, s := range m.List() {
		if s.info.Digest == digest {
			return true
		}
	}
	return false
}

// Count is how many sandboxes there are or are being made, for the idle daemon.
func (m *Manager) Count() int { return m.registry.countSandboxes() }

// Writable are the directories of the host in which sandboxes may write that live or are paused, and in
// which others could before.
func (m *Manager) Writable() []hostpath.Tree { return m.remover.blueprints.Writable() }

// Events returns a channel of what happens from after the event with the number on; see
// journal.Feed.
func (m *Manager) Events(ctx context.Context, after int64) (<-chan Event, error) {
	return m.tracker.journal.Follow(ctx, after)
}

// Create makes a sandbox: checked whole before anything is made, and on error
// nothing is left. On return its guest agent is configured.
func (m *Manager) Create(ctx context.Context, req Request) (*Sandbox, error) {
	return m.creator.Create(ctx, req)
}

// Destroy ends a sandbox and takes it away; it returns when nothing is left.
// A second Destroy waits for the first. A sandbox that could not be taken away is tried again,
// with pauses that grow, until it is; Sandbox.Stuck tells of it meanwhile.
func (m *Manager) Destroy(ctx context.Context, id string) error { return m.remover.destroy(ctx, id) }

// Cut ends a sandbox whose run has used up its quota of records. It returns at
// once.
func (m *Manager) Cut(id string) {
	m.background.doInBackground(func() {
		m.cfg.Log.Warn("a run used up its quota of records; its sandbox is destroyed", "sandbox", id)
		if err := m.Destroy(m.background.ctx, id); err != nil {
			m.cfg.Log.Error("a sandbox that was cut can't be destroyed", "sandbox", id, "err", err)
		}
	})
}

// PoolTarget says how many sandboxes should be ready for requests like one.
type PoolTarget struct {
	Request Request
	Size    int
}

// SetPool replaces what the pool is to hold.
func (m *Manager) SetPool(ctx context.Context, targets []PoolTarget) error {
	sizes := map[pool.Class]int{}
	for _, t := range targets {
		p, err := m.planner.makePlan(ctx, t.Request)
		if err != nil {
			return err
		}
		c, err := p.poolClass()
		if err != nil {
			return err
		}
		sizes[c] += t.Size
	}
	m.ready.pool.SetTargets(sizes)
	return nil
}

// PoolCounts tells how the pool stands.
func (m *Manager) PoolCounts() pool.Counts { return m.ready.pool.Counts() }

// PolicyText returns the document of a digest, or fault.ErrNotFound.
func (m *Manager) PolicyText(digest string) ([]byte, error) { return m.documents.policyText(digest) }

// Lockfiles are the kept lockfiles of a run, by the digest in its started record;
// nil for "". fault.ErrNotFound if they are not kept any more.
func (m *Manager) Lockfiles(digest string) (*lockfile.Set, error) {
	return m.documents.readLocks(digest)
}

// PolicyPut tells that the document of a source was replaced. With narrow the live
// sandboxes that began under another document of it, those that are being made, and
// their copies are narrowed by the new one: what either refuses is refused. It can't
// be taken back. After an error some of them may be narrowed.
func (m *Manager) PolicyPut(ctx context.Context, p *policy.Policy, source string, text []byte, narrow bool) (Applied, error) {
	if narrow {
		if err := m.documents.keepPolicy(p.Digest(), text); err != nil {
			return Applied{}, err
		}
	}
	return m.replacements.putDocument(ctx, p, source, narrow)
}

// Narrow replaces what a sandbox's client gives up of the network; it is on record
// first. A sandbox on disk can be narrowed, too: it counts when it runs again.
func (m *Manager) Narrow(ctx context.Context, id string, n policy.Narrowing) error {
	s, err := m.Get(id)
	if err != nil {
		return err
	}
	if state, _ := s.State(); state.Ends() {
		return state.Refuse(id)
	}
	return m.cfg.Door.Narrow(ctx, id, n)
}

// Narrowing is what a sandbox's client has given up of the network. A copy begins
// with its source's.
func (m *Manager) Narrowing(id string) policy.Narrowing { return m.cfg.Door.Narrowing(id) }

var _ admission.Holder = (*Manager)(nil)

// Held implements admission.Holder: a request of the sandbox's client waits for a
// person. It returns at once.
func (m *Manager) Held(sandbox string, h admission.Hold, freeze bool) {
	s, err := m.Get(sandbox)
	if err != nil {
		return // it is gone, and its client with it
	}
	hold := heldAs(h)
	hold.Freeze = freeze
	s.waits.Held(hold)
}

// Released implements admission.Holder: it returns when the sandbox runs.
func (m *Manager) Released(ctx context.Context, sandbox string, h admission.Hold) error {
	s, err := m.Get(sandbox)
	if err != nil {
		return err
	}
	defer s.clients.NoteActivity()
	return s.waits.Released(ctx, heldAs(h))
}

func heldAs(h admission.Hold) suspend.Hold {
	return suspend.Hold{Approval: h.Approval, Tree: h.Tree, Package: h.Package, Host: h.Host, Push: h.Push, Tool: h.Tool, Reason: h.Reason}
}
