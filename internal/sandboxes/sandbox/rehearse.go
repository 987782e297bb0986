package sandbox

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// Rehearsal is a sandbox like another one, of its own, in which installs are only
// weighed: what a command would bring is found out in it, and it is thrown away.
type Rehearsal struct {
	m       *Manager
	sandbox *Sandbox
	// Mounts are where the host's directories lie, as in the other sandbox, all of
	// them read-only.
	Mounts []mountpolicy.Mount
}

// Rehearse makes a sandbox for the same owner as another one, with its policy,
// lockfiles, template and environment. The work inside of the other is not in it.
// It counts against the owner's quota while it lives.
func (m *Manager) Rehearse(ctx context.Context, id string) (*Rehearsal, error) {
	s, err := m.Get(id)
	if err != nil {
		return nil, err
	}
	if s.info.Snapshot != "" || s.info.Parent != "" {
		return nil, fault.New(fault.ErrConflict, "the sandbox %s is a copy, whose files no other sandbox has", id)
	}
	kept, err := m.remover.blueprints.Load(id)
	if err != nil {
		return nil, err
	}
	var lock *lockfile.Given
	if s.info.LockDigest != "" {
		if lock, err = m.documents.givenLock(s.info.LockDigest); err != nil {
			return nil, err
		}
	}
	made, err := m.Create(ctx, Request{
		Run: journal.NewID("tree-", 6), Task: "finds out what an install of " + s.info.Run + " brings", Template: s.info.Template, Engine: s.info.Engine,
		Policy: s.policy, PolicySource: s.info.PolicySource, Lock: lock, Mounts: kept.Mounts, Env: kept.Env, Workdir: s.info.Workdir,
		Plan: true, Rehearsal: true, Lifetime: Lifetime{TTL: longestRehearsal}, Owner: s.info.Owner, Account: s.info.Account, User: s.info.User,
		HostUID: kept.Spec.Owner.HostUID, HostGID: kept.Spec.Owner.HostGID,
		Narrowing: m.cfg.Door.Narrowing(id),
	})
	if err != nil {
		return nil, err
	}
	return &Rehearsal{m: m, sandbox: made, Mounts: kept.Mounts}, nil
}

// longestRehearsal is when one ends that nobody ended.
const longestRehearsal = 10 * time.Minute

// Run is the run that the rehearsal's records are of.
func (r *Rehearsal) Run() string { return r.sandbox.info.Run }

// Output runs a command and returns what it wrote to standard output, of which there may
// be so many bytes. It fails if the command does.
func (r *Rehearsal) Output(ctx context.Context, c commands.Command) ([]byte, error) {
	return r.sandbox.commands.Output(ctx, c)
}

// End takes the rehearsal away.
func (r *Rehearsal) End(ctx context.Context) error {
	return r.m.Destroy(context.WithoutCancel(ctx), r.sandbox.info.ID)
}
