package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/copies"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/mounts"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/snapshots"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/waiting"
	"github.com/cofferdam-dev/cofferdam/internal/template"
)

// What a sandbox gets where the policy says nothing.
const (
	defaultCPU    = 2
	defaultMemory = 2 << 30
	defaultDisk   = 4 << 30
	defaultPids   = 512
	defaultNoFile = 65536
	tmpBytes      = 512 << 20
	agentUID      = 1000
	bootPatience  = 30 * time.Second
)

// Create makes a sandbox: checked whole before anything is made, and on error
// nothing is left. On return its guest agent is configured.
func (m *Manager) Create(ctx context.Context, req Request) (made *Sandbox, err error) {
	ctx, done := m.observe(ctx, VerbCreate, "")
	defer func() { done(made, "", err) }()
	return m.once(ctx, req, func(digest string) (*Sandbox, error) {
		lease, err := m.lease(ctx, req) // before the turn: it may take long
		if err != nil {
			return nil, err
		}
		leave, err := m.gate.enter(ctx, req.Owner.Token)
		if err != nil {
			lease.Release()
			return nil, err
		}
		defer leave()
		return m.create(ctx, req, lease, digest)
	})
}

// create makes a sandbox of a request, whose digest is there if it has an
// idempotency key. The lease of the snapshot, nil if there is none, is its own now.
func (m *Manager) create(ctx context.Context, req Request, lease *snapshots.Lease, digest string) (*Sandbox, error) {
	req, err := m.resolve(ctx, req, lease)
	if err != nil {
		return nil, err
	}
	defer req.from.Release()
	plan, err := m.plan(ctx, req)
	if err != nil {
		return nil, err
	}
	if t, ok := plan.engine.(engine.Tender); ok {
		defer t.Hurry(req.Owner.Token)()
	}
	if err := m.keepPolicy(req); err != nil {
		return nil, err
	}
	if err := m.keepLock(req.Lock, plan.lock); err != nil {
		return nil, err
	}
	faultpoint.Hit(faultpoint.CreatePlanned)
	b, err := m.begin(ctx, plan, req, digest)
	if err != nil {
		return nil, err
	}
	s, err := m.bear(ctx, plan, req)
	if err != nil {
		b.die(ctx, err)
		return nil, err
	}
	b.live(ctx, s)
	if err := m.obey(ctx, s); err != nil { // nobody has had its id yet
		return nil, errors.Join(err, m.Destroy(context.WithoutCancel(ctx), s.info.ID))
	}
	if plan.follow != nil {
		plan.follow()
	}
	return s, nil
}

// bear makes what was planned.
func (m *Manager) bear(ctx context.Context, plan *plan, req Request) (*Sandbox, error) {
	run := admission.Run{
		Sandbox: plan.info.ID, Run: plan.info.Run, Task: req.Task, User: req.User, Token: req.Owner.Token,
		Policy: req.Policy, Lock: plan.lock, Template: plan.info.Template, Started: plan.info.Created, Plan: req.Plan, Rehearsal: req.Rehearsal,
		Narrowing: req.Narrowing, Kept: m.loadPolicy,
	}
	if err := m.register(ctx, run, req.from); err != nil {
		m.unclaim(ctx, plan)
		return nil, err
	}
	faultpoint.Hit(faultpoint.CreateRegistered)
	s, err := m.boot(ctx, plan, req)
	if err != nil {
		m.cfg.Door.Unregister(plan.info.ID)
		return nil, err
	}
	return s, nil
}

// plan is everything that Create needs to know before it makes anything.
type plan struct {
	info     Info
	engine   engine.Engine
	template template.Template
	spec     engine.Spec
	names    []string
	caPEM    []byte
	lock     *lockfile.Set // nil: none
	account  channel.User
	// workspace is the policy's directory inside.
	workspace policy.Workspace
	claimed   engine.Instance // out of the pool; nil: it is to be made
	follow    func()          // follows the commands that go on in a copy; nil: there are none
}

func (m *Manager) plan(ctx context.Context, req Request) (*plan, error) {
	if err := checkRequest(req); err != nil {
		return nil, err
	}
	lock, err := readLock(req.Lock)
	if err != nil {
		return nil, err
	}
	eng, caps, err := m.chooseEngine(ctx, req)
	if err != nil {
		return nil, err
	}
	if req.from != nil {
		if err := m.copies.MayRestore(req.from, eng, caps); err != nil {
			return nil, err
		}
	}
	tpl, err := m.templateOf(ctx, req)
	if err != nil {
		return nil, err
	}
	caPEM, names, err := m.cfg.Trust(ctx)
	if err != nil {
		return nil, err
	}
	p := &plan{engine: eng, template: tpl, names: names, caPEM: caPEM, lock: lock}
	p.info = Info{
		ID: newSandboxID(), Run: req.Run, Task: req.Task, Template: tpl.Name, Digest: tpl.Digest,
		Engine: eng.Name(), PolicyDigest: req.Policy.Digest(), PolicySource: req.PolicySource,
		User: req.User, Workdir: cmp.Or(req.Workdir, req.Policy.Workspace().Path), Linger: req.Linger, Plan: req.Plan, Rehearsal: req.Rehearsal, Created: time.Now().UTC(),
		Notes: req.Policy.Notes(), Lifetime: req.Lifetime, Owner: req.Owner, Account: req.Account, Labels: req.Labels,
	}
	_, p.info.TemplateMounts = mounts.Destinations(tpl.Mounts)
	req.from.Name(&p.info)
	p.workspace = req.Policy.Workspace()
	p.account = account(req.Account, tpl)
	if lock != nil {
		p.info.LockDigest = lock.Digest()
	}
	if p.info.Run == "" {
		p.info.Run = journal.NewID("run-", 6)
	}
	for _, c := range slices.Sorted(maps.Keys(caps.Missing)) {
		if c == engine.ControlFreeze {
			continue // whoever needs it was refused; nobody else has to know
		}
		p.info.Missing = append(p.info.Missing, string(c)+": "+caps.Missing[c])
	}
	p.spec, err = m.spec(req, p)
	p.info.Limits = p.spec.Limits
	return p, err
}

func (m *Manager) templateName(req Request) string {
	if req.Template != "" {
		return req.Template
	}
	return m.cfg.DefaultTemplate
}

// spec translates a request into the engine's terms.
func (m *Manager) spec(req Request, p *plan) (engine.Spec, error) {
	if from := req.from; from != nil {
		p.info.WritableMounts, p.info.ReadOnlyMounts = nil, slices.Clone(from.Of.ReadOnlyMounts)
		return m.copies.Spec(from, copies.Wanted{
			ID: p.info.ID, Run: p.info.Run, Token: req.Owner.Token, Root: p.template.Root, TemplateMounts: p.template.Mounts,
			PolicyMounts: mounts.OfPolicy(req.Policy), Limits: limitsOf(req.Policy),
		})
	}
	shown, err := m.rules.Lay(askedMounts(req), decidingFiles(req))
	if err != nil {
		return engine.Spec{}, err
	}
	p.info.WritableMounts, p.info.ReadOnlyMounts = mounts.Destinations(shown)
	limits := limitsOf(req.Policy)
	all := slices.Concat(p.template.Mounts, []engine.Mount{
		{Source: m.cfg.AgentDir, Destination: mounts.AgentPlace, ReadOnly: true},
		{Destination: "/tmp", SizeBytes: min(tmpBytes, limits.MemoryBytes/2), Mode: 0o1777},
	}, shown)
	return engine.Spec{
		ID: p.info.ID, Root: p.template.Root, Mounts: all,
		Init:     []string{"/.cofferdam/bin/cofferdam-guest"},
		Env:      []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Hostname: p.info.ID, Limits: limits,
		Owner:  engine.Owner{UID: agentUID, GID: agentUID, HostUID: req.HostUID, HostGID: req.HostGID},
		Labels: map[string]string{"run": p.info.Run},
		Share:  req.Owner.Token,
	}, nil
}

// limitsOf are a policy's, with the defaults where it has none.
func limitsOf(p *policy.Policy) engine.Limits {
	res := p.Resources()
	return engine.Limits{
		CPU: orElse(res.CPU, defaultCPU), MemoryBytes: orElse(res.MemoryBytes, defaultMemory),
		DiskBytes: orElse(res.DiskBytes, defaultDisk), Pids: int(orElse(res.Pids, defaultPids)),
	}
}

// boot starts the instance and gives the guest its identity.
func (m *Manager) boot(ctx context.Context, p *plan, req Request) (*Sandbox, error) {
	if err := m.cfg.Door.SandboxStarted(ctx, p.info.ID); err != nil {
		m.unclaim(ctx, p)
		return nil, err
	}
	faultpoint.Hit(faultpoint.CreateRecorded)
	inst := p.claimed
	if inst == nil {
		var err error
		if inst, err = m.start(ctx, p, req.from); err != nil {
			m.recordFailedBoot(ctx, p.info.ID)
			return nil, err
		}
	}
	faultpoint.Hit(faultpoint.CreateLaunched)
	p.info.Handle = inst.Handle()
	s := m.newSandbox(p.info, req.Policy, inst)
	if p.info.IsCopy() {
		s.inventory.Distrust()
	}
	s.waits = waiting.New(m.ctx, m.waitsOf(s))
	if err := m.introduce(ctx, s, p, req); err != nil {
		m.recordFailedBoot(ctx, p.info.ID)
		if derr := inst.Destroy(context.WithoutCancel(ctx)); derr != nil {
			m.cfg.Log.Error("a sandbox that did not come up can't be taken away", "sandbox", p.info.ID, "err", derr)
		}
		return nil, err
	}
	s.setState(Running)
	return s, nil
}

func (m *Manager) recordFailedBoot(ctx context.Context, id string) {
	if err := m.cfg.Door.SandboxEnded(context.WithoutCancel(ctx), id, "did not come up"); err != nil {
		m.cfg.Log.Error("a failed start is not on record", "sandbox", id, "err", err)
	}
}

// introduce tells the keeper and the disk what to remember, and the guest who it
// is, at the same time: neither needs the other, and somebody waits for both.
func (m *Manager) introduce(ctx context.Context, s *Sandbox, p *plan, req Request) error {
	ctx, cancel := context.WithTimeout(ctx, bootPatience)
	defer cancel()
	var both errgroup.Group
	both.Go(func() error {
		return errand.Try(func() error {
			if err := m.remember(ctx, p.info, nil); err != nil {
				return err
			}
			faultpoint.Hit(faultpoint.CreateRemembered)
			return m.blueprints.Keep(p.info.ID, copies.Blueprint{Spec: p.spec, Env: req.Env, Mounts: req.Mounts})
		})
	})
	both.Go(func() error { return errand.Try(func() error { return m.configure(ctx, p, req) }) })
	if err := both.Wait(); err != nil {
		return err
	}
	var err error
	if p.follow, err = m.takeUp(ctx, s, req.from); err != nil {
		return err
	}
	err = m.inventory.Learn(ctx, s.info)
	faultpoint.Hit(faultpoint.CreateListed)
	return err
}

// configure gives the guest its identity.
func (m *Manager) configure(ctx context.Context, p *plan, req Request) error {
	// /tmp is memory and small; a big download belongs on the disk.
	env := map[string]string{"TMPDIR": "/var/tmp"}
	maps.Copy(env, m.cfg.ClientSettings)
	maps.Copy(env, p.template.Env)
	maps.Copy(env, m.cfg.ClientEnv())
	maps.Copy(env, req.Env)
	env["COFFERDAM_RUN"] = p.info.Run
	if req.Account.Home != "" {
		env["HOME"] = req.Account.Home
	}
	reply, err := m.cfg.Keeper.Call(ctx, p.info.ID, channel.Call{Kind: channel.CallConfigure, Configure: &channel.Configure{
		Hostname: p.info.ID, Env: env, CAPEM: p.caPEM, Names: p.names,
		MachineID: machineID(p.info.ID), User: p.account,
		Seed: seed(), Now: time.Now().UnixNano(),
		Workspace: p.workspace.Path, WorkspaceReadOnly: p.workspace.ReadOnly,
		Limits: channel.ExecLimits{NProc: p.spec.Limits.Pids, NoFile: defaultNoFile},
	}})
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the sandbox's agent did not come up")
	}
	if !reply.OK {
		return fault.New(fault.ErrUnavailable, "the sandbox's agent refused its configuration: %s", reply.Error)
	}
	faultpoint.Hit(faultpoint.CreateConfigured)
	return nil
}

// account is who runs commands: the template's user, or the one asked for in its
// place.
func account(asked Account, tpl template.Template) channel.User {
	user := channel.User{Name: tpl.User, UID: agentUID, GID: agentUID, Home: tpl.Home}
	if asked.Name != "" {
		user.Name = asked.Name
	}
	if asked.Home != "" {
		user.Home = asked.Home
	}
	return user
}

func orElse[T int | int64 | float64](v, fallback T) T {
	if v > 0 {
		return v
	}
	return fallback
}

func seed() []byte {
	b := make([]byte, 32)
	rand.Read(b) // never fails: it ends the process instead
	return b
}
