package sandbox

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/attest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/copies"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

// The limits that a sandbox gets where the policy says nothing.
const (
	defaultCPU    = 2
	defaultMemory = 2 << 30
	defaultDisk   = 4 << 30
	defaultPids   = 512
	tmpBytes      = 512 << 20
)

// planner finds out what sandboxes are to be, before anything of them is made.
type planner struct {
	cfg       *Config
	engines   engines
	documents documents
	rules     mountpolicy.Rules
	copies    *copies.Library
	reading   *fairqueue.Shares // of lockfiles, which may take some ten MiB each to read
}

// creationPlan is everything that must be known before a sandbox is made.
type creationPlan struct {
	info     Info
	engine   engine.Engine
	template template.Template
	spec     engine.Spec
	names    []string
	caPEM    []byte
	lock     *lockfile.Set // nil: none
	// workspace is the policy's directory inside.
	workspace policy.Workspace
	proxy     bool              // the policy wants one inside
	variables map[string]string // with placeholders
	owned     []string          // directories below the home
	polls     bool              // identity's
	claimed   engine.Instance   // out of the pool; nil: it is to be made
	follow    func()            // follows the commands that go on in a copy; nil: there are none
}

// identity is what the guest is told, with the request's environment.
func (p *creationPlan) identity(env map[string]string) identity {
	return identity{
		info: p.info, template: p.template, env: env, variables: p.variables, names: p.names, caPEM: p.caPEM, workspace: p.workspace, proxy: p.proxy, pids: p.spec.Limits.Pids, owned: p.owned, polls: p.polls,
	}
}

// makePlan makes the plan of a request, which was resolved. It is checked whole.
func (l *planner) makePlan(ctx context.Context, req Request) (*creationPlan, error) {
	if err := checkRequest(req); err != nil {
		return nil, err
	}
	lock, err := l.lockOf(ctx, req)
	if err != nil {
		return nil, err
	}
	eng, caps, err := l.engines.choose(ctx, req, l.cfg.DefaultEngine, l.cfg.CallEngines)
	if err != nil {
		return nil, err
	}
	if req.from != nil {
		if err := l.copies.MayRestore(req.from, eng, caps); err != nil {
			return nil, err
		}
	}
	tpl, err := l.template(ctx, req)
	if err != nil {
		return nil, err
	}
	caPEM, names, err := trustOf(ctx, l.cfg, req.Policy, nil)
	if err != nil {
		return nil, err
	}
	p := &creationPlan{engine: eng, template: tpl, names: names, caPEM: caPEM, lock: lock, workspace: req.Policy.Workspace(), proxy: req.Policy.NetworkProxy()}
	p.info = p.newInfo(req, caps)
	if p.info.Placeholders, err = l.placeholders(req); err != nil {
		return nil, err
	}
	p.variables = placeholderVariables(req.Policy, p.info.Placeholders)
	p.spec, err = l.engineSpec(ctx, req, p)
	p.info.Limits = p.spec.Limits
	p.polls = missesHostEvents(p.info, caps.Wall)
	return p, err
}

// lockOf reads a request's lockfiles in a turn of its owner: reading takes many times their size, which no
// room counts.
func (l *planner) lockOf(ctx context.Context, req Request) (*lockfile.Set, error) {
	if req.Lock == nil {
		return nil, nil //nolint:nilnil // no lockfiles is a good answer
	}
	_, leave, err := l.reading.Take(fairqueue.For(ctx, req.Owner.Token))
	if errors.Is(err, fairqueue.ErrCrowded) {
		return nil, fault.Exhausted(time.Second, "%d requests of the same owner wait already for their lockfiles to be read", createLine)
	}
	if err != nil {
		return nil, err
	}
	defer leave()
	return readLock(req.Lock)
}

// newInfo is what is known of the sandbox before it is there.
func (p *creationPlan) newInfo(req Request, caps engine.Capabilities) Info {
	info := Info{
		ID: newSandboxID(), Run: req.Run, Task: req.Task, Template: p.template.Name, Digest: p.template.Digest,
		Engine: p.engine.Name(), PolicyDigest: req.Policy.Digest(), PolicySource: req.PolicySource,
		User: req.User, Workdir: cmp.Or(req.Workdir, req.Policy.Workspace().Path), Linger: req.Linger, Plan: req.Plan, Rehearsal: req.Rehearsal, Workshop: req.source != nil, Proof: req.proof, Created: time.Now().UTC(),
		Notes: req.Policy.Notes(), Lifetime: begunLifetime(req.Lifetime), Owner: req.Owner, Account: req.Account, Labels: req.Labels, Home: req.Home,
	}
	_, info.TemplateMounts = mountpolicy.Destinations(p.template.Mounts)
	req.from.Name(&info)
	if p.lock != nil {
		info.LockDigest, info.LockBytes = p.lock.Digest(), req.Lock.KeptBytes()
		info.Notes = append(info.Notes, p.lock.Remarks()...)
	}
	if info.Run == "" {
		info.Run = journal.NewID("run-", 6)
	}
	for _, c := range slices.Sorted(maps.Keys(caps.Missing)) {
		if c == engine.ControlFreeze || c == engine.ControlSnapshotFiles {
			continue // whoever needs it was refused; nobody else has to know
		}
		info.Missing = append(info.Missing, string(c)+": "+caps.Missing[c])
	}
	return info
}

// begunLifetime is the lifetime of a new sandbox, which has no lease that it could keep.
func begunLifetime(l Lifetime) Lifetime {
	l.Lease = keptOr(l.Lease, 0)
	return l
}

// template finds a request's template; of a copy it is the one that its source was made
// from, in the same generation.
func (l *planner) template(ctx context.Context, req Request) (template.Template, error) {
	if from := req.from; from != nil {
		return l.cfg.Templates.Generation(ctx, from.Of.Template, from.Of.Digest)
	}
	return l.cfg.Templates.Get(ctx, cmp.Or(req.Template, l.cfg.DefaultTemplate))
}

// engineSpec translates a request into the engine's terms.
func (l *planner) engineSpec(ctx context.Context, req Request, p *creationPlan) (engine.Spec, error) {
	limits := limitsOf(req.Policy)
	if req.proof {
		limits = attest.Lower(limits)
	}
	if from := req.from; from != nil {
		spec, err := l.copies.Spec(ctx, from, copies.Wanted{
			ID: p.info.ID, Run: p.info.Run, Token: req.Owner.Token, Root: p.template.Root, TemplateMounts: p.template.Mounts,
			PolicyMounts: mountpolicy.OfPolicy(req.Policy), Limits: limits,
		})
		p.info.WritableMounts, p.info.ReadOnlyMounts = nil, mountpolicy.WithHidden(from.Of.ReadOnlyMounts, spec.Mounts)
		return spec, err
	}
	shown, err := l.rules.Lay(ctx, askedMounts(req), decidingFiles(req))
	if err != nil {
		return engine.Spec{}, err
	}
	p.info.Notes = append(p.info.Notes, mountpolicy.NobodysFiles(shown, req.HostUID)...)
	kept, err := l.homeMounts(ctx, req, p, shown, limits.DiskBytes)
	if err != nil {
		return engine.Spec{}, err
	}
	shown = slices.Concat(shown, kept)
	p.info.WritableMounts, p.info.ReadOnlyMounts = mountpolicy.Destinations(shown)
	all := slices.Concat(p.template.Mounts, []engine.Mount{
		{Source: l.cfg.AgentDir, Destination: mountpolicy.AgentPlace, ReadOnly: true},
		{Destination: "/tmp", SizeBytes: temporaryBytes(limits), Mode: 0o1777},
	}, shown)
	return engine.Spec{
		ID: p.info.ID, Root: p.template.Root, Mounts: all,
		Init:     []string{mountpolicy.AgentPlace + "/" + agentName},
		Env:      []string{"PATH=" + systemPath},
		Hostname: p.info.ID, Limits: limits,
		Owner:  engine.Owner{UID: agentUID, GID: agentUID, HostUID: req.HostUID, HostGID: req.HostGID},
		Labels: map[string]string{"run": p.info.Run},
		Share:  req.Owner.Token,
	}, nil
}

// temporaryBytes is the size of /tmp.
func temporaryBytes(l engine.Limits) int64 { return min(tmpBytes, l.MemoryBytes/2) }

// limitsOf are a policy's, with the defaults where it has none.
func limitsOf(p *policy.Policy) engine.Limits {
	res := p.Resources()
	return engine.Limits{
		CPU: orElse(res.CPU, defaultCPU), MemoryBytes: orElse(res.MemoryBytes, defaultMemory),
		DiskBytes: orElse(res.DiskBytes, defaultDisk), Pids: int(orElse(res.Pids, defaultPids)),
	}
}

func orElse[T int | int64 | float64](v, fallback T) T {
	if v > 0 {
		return v
	}
	return fallback
}

func newSandboxID() string { return journal.NewID("sb", 8) }
