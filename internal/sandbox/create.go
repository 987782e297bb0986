package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
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
func (m *Manager) Create(ctx context.Context, req Request) (*Sandbox, error) {
	plan, err := m.plan(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := m.keepPolicy(req); err != nil {
		return nil, err
	}
	if err := m.keepLock(req.Lock, plan.lock); err != nil {
		return nil, err
	}
	run := admission.Run{
		Sandbox: plan.info.ID, Run: plan.info.Run, Task: req.Task, User: req.User,
		Policy: req.Policy, Lock: plan.lock, Template: plan.info.Template, Started: plan.info.Created, Plan: req.Plan,
		Narrowing: req.Narrowing,
	}
	if err := m.cfg.Door.Register(run); err != nil {
		return nil, err
	}
	s, err := m.boot(ctx, plan, req)
	if err != nil {
		m.cfg.Door.Unregister(plan.info.ID)
		return nil, err
	}
	m.add(s)
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
	tpl, err := m.cfg.Templates.Get(ctx, m.templateName(req))
	if err != nil {
		return nil, err
	}
	caPEM, names, err := m.cfg.Trust(ctx)
	if err != nil {
		return nil, err
	}
	p := &plan{engine: eng, template: tpl, names: names, caPEM: caPEM, lock: lock}
	p.info = Info{
		ID: "sb" + hex.EncodeToString(seed()[:8]), Run: req.Run, Task: req.Task, Template: tpl.Name, Digest: tpl.Digest,
		Engine: eng.Name(), PolicyDigest: req.Policy.Digest(), PolicySource: req.PolicySource,
		User: req.User, Workdir: orDir(req.Workdir, req.Policy.Workspace().Path), Linger: req.Linger, Plan: req.Plan, Created: time.Now().UTC(),
		Notes: req.Policy.Notes(),
	}
	if lock != nil {
		p.info.LockDigest = lock.Digest()
	}
	if p.info.Run == "" {
		p.info.Run = newID("run")
	}
	for _, c := range slices.Sorted(maps.Keys(caps.Missing)) {
		if c == engine.ControlFreeze {
			continue // whoever needs it was refused; nobody else has to know
		}
		p.info.Missing = append(p.info.Missing, string(c)+": "+caps.Missing[c])
	}
	p.spec, err = m.spec(req, p)
	return p, err
}

func (m *Manager) templateName(req Request) string {
	if req.Template != "" {
		return req.Template
	}
	return m.cfg.DefaultTemplate
}

// chooseEngine finds the engine and refuses one that can't enforce what every
// sandbox needs; limits it can't enforce are told (Info.Missing).
func (m *Manager) chooseEngine(ctx context.Context, req Request) (engine.Engine, engine.Capabilities, error) {
	name := req.Engine
	if name == "" {
		name = req.Policy.Isolation()
	}
	if name == "" {
		name = m.cfg.DefaultEngine
	}
	if want := req.Policy.Isolation(); want != "" && want != name {
		return nil, engine.Capabilities{}, fault.New(fault.ErrForbidden, "the policy asks for isolation %s, so the engine can't be %s", want, name)
	}
	eng, ok := m.cfg.Engines[name]
	if !ok {
		known := slices.Sorted(maps.Keys(m.cfg.Engines))
		return nil, engine.Capabilities{}, fault.Invalid("there is no engine %q; this version has: %s", name, strings.Join(known, ", "))
	}
	caps, err := eng.Capabilities(ctx)
	if err != nil {
		return nil, engine.Capabilities{}, err
	}
	for _, must := range []engine.Control{engine.ControlNoNetwork, engine.ControlReadOnlyRoot} {
		if !slices.Contains(caps.Enforces, must) {
			return nil, engine.Capabilities{}, fault.New(fault.ErrUnavailable, "the engine %s can't enforce %s here: %s", name, must, caps.Missing[must])
		}
	}
	if mode, _ := req.Policy.OnHold(); mode == policy.HoldFreeze && !slices.Contains(caps.Enforces, engine.ControlFreeze) {
		return nil, engine.Capabilities{}, fault.New(fault.ErrUnavailable,
			"the policy says on_hold: freeze, and the engine %s can't freeze sandboxes here%s; on_hold: wait 20s and fail are possible", name, because(caps.Missing[engine.ControlFreeze]))
	}
	return eng, caps, nil
}

// because is a reason in brackets, if there is one.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// spec translates a request into the engine's terms.
func (m *Manager) spec(req Request, p *plan) (engine.Spec, error) {
	mounts, err := m.mounts(req)
	if err != nil {
		return engine.Spec{}, err
	}
	p.info.WritableMounts, p.info.ReadOnlyMounts = destinations(mounts)
	res := req.Policy.Resources()
	limits := engine.Limits{
		CPU: orElse(res.CPU, defaultCPU), MemoryBytes: orElse(res.MemoryBytes, defaultMemory),
		DiskBytes: orElse(res.DiskBytes, defaultDisk), Pids: int(orElse(res.Pids, defaultPids)),
	}
	all := slices.Concat(p.template.Mounts, []engine.Mount{
		{Source: m.cfg.AgentDir, Destination: "/.cofferdam/bin", ReadOnly: true},
		{Destination: "/tmp", SizeBytes: min(tmpBytes, limits.MemoryBytes/2), Mode: 0o1777},
	}, mounts)
	return engine.Spec{
		ID: p.info.ID, Root: p.template.Root, Mounts: all,
		Init:     []string{"/.cofferdam/bin/cofferdam-guest"},
		Env:      []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Hostname: "sandbox", Limits: limits,
		Owner:  engine.Owner{UID: agentUID, GID: agentUID, HostUID: req.HostUID, HostGID: req.HostGID},
		Labels: map[string]string{"run": p.info.Run},
	}, nil
}

// mounts checks what was asked and policy asks for, and lays the guards over.
func (m *Manager) mounts(req Request) ([]engine.Mount, error) {
	asked := slices.Concat(req.Mounts, policyMounts(req.Policy))
	checked := make([]Mount, 0, len(asked))
	var all, over []engine.Mount
	for _, a := range asked {
		a.ReadWrite = a.ReadWrite && !req.Plan // what nobody has admitted may run in a plan
		c, err := m.rules.check(a)
		if err != nil {
			return nil, err
		}
		checked = append(checked, c)
		all = append(all, engine.Mount{Source: c.Source, Destination: c.Destination, ReadOnly: !c.ReadWrite})
		hidden, err := hide(c, m.cfg.EmptyFile)
		if err != nil {
			return nil, err
		}
		over = append(over, hidden...)
	}
	if err := checkNested(checked); err != nil {
		return nil, err
	}
	// A mount inside of another comes after it, or it would lie below it.
	slices.SortStableFunc(all, func(a, b engine.Mount) int { return strings.Compare(a.Destination, b.Destination) })
	// What the ignore file hides stays hidden: it lies over the guards.
	guards, err := guard(checked, guarded(req, checked))
	if err != nil {
		return nil, err
	}
	return slices.Concat(all, guards, over), nil
}

// boot starts the instance and gives the guest its identity.
func (m *Manager) boot(ctx context.Context, p *plan, req Request) (*Sandbox, error) {
	if err := m.cfg.Door.SandboxStarted(ctx, p.info.ID); err != nil {
		return nil, err
	}
	inst, err := p.engine.Create(ctx, p.spec)
	if err != nil {
		m.recordFailedBoot(ctx, p.info.ID)
		return nil, err
	}
	p.info.Handle = inst.Handle()
	s := newSandbox(p.info, req.Policy, inst)
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

// introduce tells the keeper what to remember and the guest who it is.
func (m *Manager) introduce(ctx context.Context, s *Sandbox, p *plan, req Request) error {
	ctx, cancel := context.WithTimeout(ctx, bootPatience)
	defer cancel()
	if err := m.remember(ctx, p.info, nil); err != nil {
		return err
	}
	// /tmp is memory and small; a big download belongs on the disk.
	env := map[string]string{"TMPDIR": "/var/tmp"}
	maps.Copy(env, p.template.Env)
	maps.Copy(env, m.cfg.ClientEnv())
	maps.Copy(env, req.Env)
	env["COFFERDAM_RUN"] = p.info.Run
	reply, err := m.cfg.Keeper.Call(ctx, p.info.ID, channel.Call{Kind: channel.CallConfigure, Configure: &channel.Configure{
		Hostname: p.spec.Hostname, Env: env, CAPEM: p.caPEM, Names: p.names,
		User: channel.User{Name: p.template.User, UID: agentUID, GID: agentUID, Home: p.template.Home},
		Seed: seed(), Now: time.Now().UnixNano(),
		Workspace: req.Policy.Workspace().Path, WorkspaceReadOnly: req.Policy.Workspace().ReadOnly,
		Limits: channel.ExecLimits{NProc: p.spec.Limits.Pids, NoFile: defaultNoFile},
	}})
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the sandbox's agent did not come up")
	}
	if !reply.OK {
		return fault.New(fault.ErrUnavailable, "the sandbox's agent refused its configuration: %s", reply.Error)
	}
	return m.learnBaseline(ctx, s)
}

func orElse[T int | int64 | float64](v, fallback T) T {
	if v > 0 {
		return v
	}
	return fallback
}

func newID(prefix string) string { return prefix + "-" + hex.EncodeToString(seed()[:6]) }

func seed() []byte {
	b := make([]byte, 32)
	rand.Read(b) // never fails: it ends the process instead
	return b
}
