package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/mounts"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/snapshots"
	"github.com/cofferdam-dev/cofferdam/internal/template"
)

// origin is what a copy of a sandbox is made from in place of a template: the
// image of a snapshot, or that of a fork.
type origin struct {
	body
	snapshot string // its id; "": it is a fork
	digest   string
	contents engine.Contents
	bytes    int64
	image    string // a directory that only the engine reads
	facts    *ledger.Facts
	release  func() // the image is not needed any more
}

// body is what a snapshot's manifest keeps for the manager.
type body struct {
	Of        Info                 `json:"of"` // the sandbox of which it is a copy
	Owner     Owner                `json:"owner,omitzero"`
	Made      made                 `json:"made"`
	Commands  []commands.Copied    `json:"commands,omitempty"` // that ran
	Ancestors []admission.Ancestor `json:"ancestors"`
	// Narrowing is what its client had given up of the network.
	Narrowing policy.Narrowing `json:"narrowing,omitzero"`
	// Built is there if it came of a template's build.
	Built *Built `json:"built,omitempty"`
}

// factsFile is the attachment with ledger.Facts.
const factsFile = "facts.json"

// let lets go of the image; of nil it does nothing.
func (o *origin) let() {
	if o != nil {
		o.release()
	}
}

// name has a new sandbox's Info say of what it is a copy, if it is one.
func (o *origin) name(info *Info) {
	if o == nil {
		return
	}
	info.Ancestors = o.Ancestors
	if info.Snapshot = o.snapshot; o.snapshot == "" {
		info.Parent = o.Of.ID
	}
}

// copyOf is the origin for the record.
func (o *origin) copyOf() admission.Copy {
	return admission.Copy{Snapshot: o.snapshot, Digest: o.digest, Contents: string(o.contents), Bytes: o.bytes, Of: o.Of.ID}
}

// lease finds the snapshot that a request names and has it lie plain, which takes long
// if it was compressed; nil if it names none.
func (m *Manager) lease(ctx context.Context, req Request) (*snapshots.Lease, error) {
	if req.Snapshot == "" || req.from != nil {
		return nil, nil //nolint:nilnil // most sandboxes are made from no snapshot
	}
	if req.Template != "" || req.Engine != "" || len(req.Mounts) > 0 {
		return nil, fault.Invalid("a sandbox that is made from a snapshot has its template, engine and mounts; the request must not have others")
	}
	store, err := m.store()
	if err != nil {
		return nil, err
	}
	return store.Lease(ctx, req.Owner.Token, req.Snapshot)
}

// resolve fills a request with what is not its own to say, if it is for a copy:
// template, engine, mounts and account are those of the source, and so are policy
// and lockfiles unless it has its own. The caller releases req.from; the lease of the
// snapshot, if there is one, is part of that.
func (m *Manager) resolve(ctx context.Context, req Request, lease *snapshots.Lease) (Request, error) {
	if req.from == nil {
		if lease == nil {
			return req, nil
		}
		var err error
		if req.from, err = m.readOrigin(ctx, lease); err != nil {
			lease.Release()
			return req, err
		}
	}
	filled, err := m.fill(req)
	if err != nil {
		req.from.release()
		return req, err
	}
	return filled, nil
}

func (m *Manager) fill(req Request) (Request, error) {
	from := req.from
	if req.Plan {
		return req, fault.Invalid("a plan is made in a sandbox of its own, not in a copy")
	}
	req.Engine, req.Template, req.Account = from.Of.Engine, from.Of.Template, from.Of.Account
	workdir, env := from.Of.Workdir, map[string]string{}
	maps.Copy(env, from.Made.Env)
	if b := from.Built; b != nil {
		workdir, req.Account.Default = cmp.Or(b.Workdir, workdir), b.User
		maps.Copy(env, b.Env)
	}
	maps.Copy(env, req.Env)
	req.Env, req.Workdir = env, cmp.Or(req.Workdir, workdir)
	if req.Narrowing.IsZero() {
		req.Narrowing = from.Narrowing
	}
	if req.Policy == nil {
		var err error
		if req.Policy, req.PolicyText, err = m.policyOf(from.Of); err != nil {
			return req, err
		}
		req.PolicySource = from.Of.PolicySource
	}
	if req.Lock == nil && from.Of.LockDigest != "" { // a lockfile narrows, so it is not lost on the way
		given, err := m.givenLock(from.Of.LockDigest)
		if err != nil {
			return req, err
		}
		req.Lock = given
	}
	return req, nil
}

// policyOf reads the policy of a sandbox as it was given.
func (m *Manager) policyOf(of Info) (*policy.Policy, []byte, error) {
	text, err := m.PolicyText(of.PolicyDigest)
	if err != nil {
		return nil, nil, err
	}
	p, err := policy.Parse(of.PolicySource, text)
	if err != nil {
		return nil, nil, err
	}
	if p.Digest() != of.PolicyDigest {
		return nil, nil, fault.New(fault.ErrConflict, "the kept policy %s has another digest now", of.PolicyDigest)
	}
	return p, text, nil
}

// givenLock reads the kept lockfiles of a digest as they were given.
func (m *Manager) givenLock(digest string) (*lockfile.Given, error) {
	if _, err := m.loadLock(digest); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(m.lockPath(digest))
	if err != nil {
		return nil, fault.Wrap(fault.ErrNotFound, err, "the lockfiles %s are not kept any more", digest)
	}
	given := &lockfile.Given{}
	return given, json.Unmarshal(data, given)
}

// readOrigin opens a snapshot and checks it against the log.
func (m *Manager) readOrigin(ctx context.Context, lease *snapshots.Lease) (*origin, error) {
	from := &origin{
		snapshot: lease.ID, digest: lease.Digest, contents: lease.Contents, bytes: lease.Bytes,
		image: lease.Image(), release: lease.Release,
	}
	damaged := func(err error) error {
		return fault.Wrap(fault.ErrConflict, err, "the snapshot %s can't be read", lease.ID)
	}
	if err := json.Unmarshal(lease.Body, &from.body); err != nil {
		return nil, damaged(err)
	}
	if err := m.cfg.Door.SnapshotOnRecord(ctx, lease.Record, from.copyOf()); err != nil {
		return nil, err
	}
	data, err := lease.Attachment(factsFile)
	if err != nil || data == nil {
		return from, err
	}
	if err := json.Unmarshal(data, &from.facts); err != nil {
		return nil, damaged(err)
	}
	return from, nil
}

// templateOf finds a request's template; of a copy it is the one that its source
// was made from, in the same generation.
func (m *Manager) templateOf(ctx context.Context, req Request) (template.Template, error) {
	if req.from == nil {
		return m.cfg.Templates.Get(ctx, m.templateName(req))
	}
	return m.cfg.Templates.Generation(ctx, req.from.Of.Template, req.from.Of.Digest)
}

// mayRestore refuses what an engine can't start here.
func (m *Manager) mayRestore(from *origin, eng engine.Engine, caps engine.Capabilities) error {
	if from == nil {
		return nil
	}
	if _, ok := eng.(engine.Restorer); !ok || !slices.Contains(caps.Enforces, engine.ControlSnapshot) {
		return fault.New(fault.ErrUnavailable, "the engine %s can't make sandboxes from copies here%s", eng.Name(), because(caps.Missing[engine.ControlSnapshot]))
	}
	agent, err := m.agentDigest()
	if err != nil {
		return err
	}
	if from.contents == engine.ContentsMemory && from.Made.Agent != agent {
		return fault.New(fault.ErrConflict, "the copy's memory is of another version of Cofferdam's guest agent, which does not go on with this one; snapshots of files alone can be used over versions")
	}
	return nil
}

// copySpec is the spec of a copy: its source's, with an id of its own, and with
// limits that are its policy's where these are lower.
func (m *Manager) copySpec(req Request, p *plan) (engine.Spec, error) {
	from := req.from
	spec := from.Made.Spec
	spec.ID, spec.Labels, spec.Root = p.info.ID, map[string]string{"run": p.info.Run}, p.template.Root
	spec.Share = req.Owner.Token
	spec.Hostname = p.info.ID // copies differ in that from their source, and from each other
	granted, err := m.granted(req)
	if err != nil {
		return spec, err
	}
	spec.Mounts, err = m.copyMounts(spec.Mounts, p.template.Mounts, granted)
	if err != nil {
		return spec, err
	}
	for _, want := range mounts.OfPolicy(req.Policy) {
		if !slices.ContainsFunc(spec.Mounts, func(has engine.Mount) bool {
			return has.Destination == want.Destination && (has.ReadOnly || want.ReadWrite)
		}) {
			return spec, fault.Invalid("the policy mounts %s, and the sandbox is made from a copy without that; a copy has the mounts of its source", want.Destination)
		}
	}
	p.info.WritableMounts, p.info.ReadOnlyMounts = nil, slices.Clone(from.Of.ReadOnlyMounts)
	spec.Limits, err = copyLimits(spec.Limits, limitsOf(req.Policy), from)
	return spec, err
}

// copyLimits are the lower ones of two. What can't hold the copy is refused.
func copyLimits(source, asked engine.Limits, from *origin) (engine.Limits, error) {
	lower := engine.Limits{
		CPU: min(source.CPU, asked.CPU), MemoryBytes: min(source.MemoryBytes, asked.MemoryBytes),
		DiskBytes: min(source.DiskBytes, asked.DiskBytes), Pids: min(source.Pids, asked.Pids),
	}
	room, what := lower.DiskBytes, "of disk"
	if from.contents == engine.ContentsMemory {
		room, what = lower.MemoryBytes+lower.DiskBytes, "of memory and disk"
	}
	if from.bytes > room {
		return lower, fault.Invalid("the policy gives %d MiB %s, and the copy has %d MiB", room>>20, what, from.bytes>>20)
	}
	return lower, nil
}

// granted are the host's directories that a copy of a token's may show: those of its
// policy, which may be another than its source's, or have changed. nil: whatever its
// source showed.
func (m *Manager) granted(req Request) ([]mounts.Mount, error) {
	if req.Owner.Token == "" {
		return nil, nil
	}
	all := []mounts.Mount{}
	for _, asked := range mounts.OfPolicy(req.Policy) {
		c, err := m.rules.Check(asked)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// copyMounts checks that what a source's mounts showed may still be shown, and is
// in the same place.
func (m *Manager) copyMounts(source, ofTemplate []engine.Mount, granted []mounts.Mount) ([]engine.Mount, error) {
	all := slices.Clone(source)
	for i, mount := range all {
		switch {
		case mount.Source == "" || mount.Source == m.cfg.EmptyFile || slices.Contains(ofTemplate, mount):
			continue
		case mount.Destination == agentPlace:
			all[i].Source = m.cfg.AgentDir
			continue
		case !mount.ReadOnly:
			return nil, fault.New(fault.ErrConflict, "the copy is of a sandbox with the host's %s mounted read-write; there are no copies of such", mount.Source)
		}
		now, err := m.rules.Check(mounts.Mount{Source: mount.Source, Destination: mount.Destination})
		if err != nil {
			return nil, err
		}
		if now.Source != mount.Source {
			return nil, fault.New(fault.ErrConflict, "%s, which the copy shows, is a link to somewhere else now", mount.Source)
		}
		if granted != nil && !slices.ContainsFunc(granted, func(g mounts.Mount) bool { return g.Source == now.Source && g.Destination == now.Destination }) {
			return nil, fault.New(fault.ErrForbidden, "the copy shows %s of the host, and its policy does not any more; make one that does not", mount.Destination)
		}
	}
	return all, nil
}

// register makes a new sandbox known to the door. What is in a copy is judged
// again: by today's advisories and the policy's blocklist, and by all of the policy's
// lists what came under another policy.
func (m *Manager) register(ctx context.Context, run admission.Run, from *origin) error {
	if from == nil {
		return m.cfg.Door.Register(run)
	}
	run.Ancestors = from.Ancestors
	if err := m.cfg.Door.RegisterCopy(ctx, run, from.facts); err != nil {
		return err
	}
	err := m.cfg.Door.RecheckCopy(ctx, run.Sandbox)
	if err == nil {
		return nil
	}
	m.cfg.Door.Unregister(run.Sandbox)
	what := "the sandbox " + from.Of.ID + " can't be forked"
	if from.snapshot != "" {
		what = "the snapshot " + from.snapshot + " can't be used"
	}
	return cantUse(what, err)
}

// cantUse puts what can't be done before the reason.
func cantUse(what string, err error) error {
	category := fault.ErrUnavailable
	if errors.Is(err, fault.ErrForbidden) {
		category = fault.ErrForbidden
	}
	return fault.Wrap(category, err, "%s", what)
}
