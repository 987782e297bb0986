package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostload"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/pool"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

// instanceKind is what a pool.Class says: everything in which two fresh instances may
// differ.
type instanceKind struct {
	Engine  string       `json:"engine"`
	Spec    engine.Spec  `json:"spec"` // without id, host name, labels and share
	Account channel.User `json:"account"`
	// Workspace as in channel.Configure.
	Workspace         string `json:"workspace,omitempty"`
	WorkspaceReadOnly bool   `json:"workspace_read_only,omitempty"`
	// Warm is what its kernel finds, which is started before anybody claims it; nil: it has none.
	Warm map[string]string `json:"warm,omitempty"`
}

// poolClass is what the sandbox that was planned has in common with others.
func (p *creationPlan) poolClass() (pool.Class, error) {
	k := instanceKind{Engine: p.engine.Name(), Spec: p.spec, Account: p.identity(nil).commandUser(), Workspace: p.workspace.Path, WorkspaceReadOnly: p.workspace.ReadOnly}
	if p.info.Template == template.NameInterpreter {
		k.Warm = maps.Clone(p.identity(nil).template.Env)
		k.Warm["HOME"] = k.Account.Home
	}
	k.Spec.ID, k.Spec.Hostname, k.Spec.Labels = "", "", nil
	// Nobody knows whose a member will be. It stays in the share that it was made in,
	// which is that of all members.
	k.Spec.Share = ""
	data, err := json.Marshal(k)
	return pool.Class(data), err
}

// ready has the sandboxes that are made before anybody asks for them.
type ready struct {
	cfg        *Config
	registry   *registry
	background *background
	pool       *pool.Pool
}

func newReady(cfg *Config, known *registry, b *background) *ready {
	r := &ready{cfg: cfg, registry: known, background: b}
	r.pool = pool.New(r, cfg.Log)
	return r
}

// claimInstance takes an instance out of the pool for a plan, if there is one; the plan
// has its id then.
func (r *ready) claimInstance(ctx context.Context, p *creationPlan) {
	if p.info.Plan || p.info.Workshop || p.info.IsCopy() || !p.info.Home.IsZero() {
		return
	}
	c, err := p.poolClass()
	if err != nil {
		return
	}
	member, ok := r.pool.Claim(ctx, c)
	if !ok {
		return
	}
	p.claimed = r.registry.poolMember(member.ID) // start makes it the sandbox's
	p.info.ID, p.spec.ID, p.spec.Hostname = member.ID, member.ID, member.ID
}

// unclaim takes away what was claimed for a plan that comes to nothing.
func (r *ready) unclaim(ctx context.Context, p *creationPlan) {
	if p.claimed == nil {
		return
	}
	if err := p.claimed.Destroy(context.WithoutCancel(ctx)); err != nil {
		r.cfg.Log.Error("a sandbox of the pool can't be taken away", "sandbox", p.info.ID, "err", err)
	}
}

var _ pool.Maker = (*ready)(nil)

// Make implements pool.Maker.
func (r *ready) Make(ctx context.Context, c pool.Class) (pool.Member, error) {
	var k instanceKind
	if err := json.Unmarshal([]byte(c), &k); err != nil {
		return pool.Member{}, err
	}
	eng, ok := r.cfg.Engines[k.Engine]
	if !ok {
		return pool.Member{}, fault.Invalid("there is no engine %q", k.Engine)
	}
	k.Spec.ID = newSandboxID()
	k.Spec.Hostname = k.Spec.ID
	defer r.registry.occupy(k.Spec.ID)()
	inst, err := eng.Create(ctx, k.Spec)
	if err != nil {
		return pool.Member{}, err
	}
	if err := r.settleIn(ctx, k); err != nil {
		return pool.Member{}, errors.Join(err, inst.Destroy(context.WithoutCancel(ctx)))
	}
	r.registry.enlist(k.Spec.ID, inst)
	r.background.doInBackground(func() {
		if _, err := inst.Wait(r.background.ctx); err == nil {
			r.pool.Lost(context.WithoutCancel(r.background.ctx), k.Spec.ID)
		}
	})
	return pool.Member{ID: k.Spec.ID, Class: c}, nil
}

// settleIn waits for the agent, has it write the files that all sandboxes have,
// and stops the instance.
func (r *ready) settleIn(ctx context.Context, k instanceKind) error {
	caPEM, names, err := r.cfg.Trust(ctx)
	if err != nil {
		return err
	}
	_, err = r.cfg.Keeper.Call(ctx, k.Spec.ID, channel.Call{Kind: channel.CallConfigure, Configure: &channel.Configure{
		Hostname: k.Spec.Hostname, MachineID: machineID(k.Spec.ID), CAPEM: caPEM, Names: names, User: k.Account,
		Seed: newSeed(), Now: time.Now().UnixNano(), Workspace: k.Workspace, WorkspaceReadOnly: k.WorkspaceReadOnly,
		Limits: channel.ExecLimits{NProc: k.Spec.Limits.Pids, NoFile: defaultNoFile},
	}})
	if err != nil {
		return fmt.Errorf("the agent did not come up: %w", err)
	}
	if k.Warm != nil && r.cfg.Warm != nil {
		if err := r.cfg.Warm(ctx, commands.Unclaimed{Keeper: r.cfg.Keeper, ID: k.Spec.ID, Home: k.Account.Home, Env: k.Warm}); err != nil {
			r.cfg.Log.Warn("a sandbox of the pool has no kernel; it starts with the first cell", "sandbox", k.Spec.ID, "err", err)
		}
	}
	return r.cfg.Keeper.Freeze(ctx, keeper.Freeze{ID: k.Spec.ID})
}

// Wake implements pool.Maker.
func (r *ready) Wake(ctx context.Context, one pool.Member) error {
	return r.cfg.Keeper.Thaw(ctx, keeper.Launch{ID: one.ID})
}

// Discard implements pool.Maker.
func (r *ready) Discard(ctx context.Context, one pool.Member) error {
	inst := r.registry.discharge(one.ID)
	if inst == nil {
		return nil
	}
	return inst.Destroy(ctx)
}

// The room that must be free before another member is made.
const (
	memoryReserve = 512 << 20
	memberMemory  = 64 << 20  // measured at 17 to 40 MiB
	warmMemory    = 256 << 20 // of one with a kernel that has imported what cells import: measured at 184 MiB
)

// Room implements pool.Maker.
func (r *ready) Room(_ context.Context, c pool.Class) error {
	memory, err := hostload.ReadMemory("/proc/meminfo")
	if err != nil {
		return err
	}
	return roomFor(c, memory.Available)
}

// roomFor tells whether a member of a class fits into what is available, so that the reserve
// stays.
func roomFor(c pool.Class, available int64) error {
	var k instanceKind
	if err := json.Unmarshal([]byte(c), &k); err != nil {
		return err
	}
	needs := int64(memberMemory)
	if k.Warm != nil {
		needs = warmMemory
	}
	if available < memoryReserve+needs {
		return fault.New(fault.ErrUnavailable, "%d MiB of memory are available, and %d must stay so", available>>20, memoryReserve>>20)
	}
	return nil
}
