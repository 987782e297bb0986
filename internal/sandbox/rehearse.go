package sandbox

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/mounts"
)

// Started is a command that runs in a sandbox, as it was started.
type Started struct {
	ID   string
	Argv []string
	Env  map[string]string
	Dir  string // "": the home
}

// Started are a sandbox's commands that have not ended, in the order of their ids.
func (m *Manager) Started(id string) ([]Started, error) {
	s, err := m.Get(id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Started
	for _, c := range s.commands {
		all = append(all, Started{ID: c.id, Argv: slices.Clone(c.argv), Env: maps.Clone(c.env), Dir: c.dir})
	}
	slices.SortFunc(all, func(a, b Started) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// Rehearsal is a sandbox like another one, of its own, in which installs are only
// weighed: what a command would bring is found out in it, and it is thrown away.
type Rehearsal struct {
	m       *Manager
	sandbox *Sandbox
	// Mounts are where the host's directories lie, as in the other sandbox, all of
	// them read-only.
	Mounts []mounts.Mount
}

// Rehearse makes a sandbox for the same owner as another one, with its policy,
// lockfiles, template and environment. What was done inside of the other is not in it.
// It counts against the owner's quota while it lives.
func (m *Manager) Rehearse(ctx context.Context, id string) (*Rehearsal, error) {
	s, err := m.Get(id)
	if err != nil {
		return nil, err
	}
	if s.info.Snapshot != "" || s.info.Parent != "" {
		return nil, fault.New(fault.ErrConflict, "the sandbox %s is a copy, whose files no other sandbox has", id)
	}
	kept, err := m.loadMade(id)
	if err != nil {
		return nil, err
	}
	var lock *lockfile.Given
	if s.info.LockDigest != "" {
		if lock, err = m.givenLock(s.info.LockDigest); err != nil {
			return nil, err
		}
	}
	made, err := m.Create(ctx, Request{
		Run: newID("tree"), Task: "finds out what an install of " + s.info.Run + " brings", Template: s.info.Template, Engine: s.info.Engine,
		Policy: s.policy, PolicySource: s.info.PolicySource, Lock: lock, Mounts: kept.Mounts, Env: kept.Env, Workdir: s.info.Workdir,
		Plan: true, Rehearsal: true, Lifetime: Lifetime{TTL: longestRehearsal}, Owner: s.info.Owner, Account: s.info.Account, User: s.info.User,
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
func (r *Rehearsal) Output(ctx context.Context, c Command) ([]byte, error) {
	id := r.sandbox.info.ID
	cmd, err := r.m.Start(ctx, id, c)
	if err != nil {
		return nil, err
	}
	conn, err := r.m.Attach(ctx, id, cmd.ID, 0)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer errand.When(ctx, func() { conn.Close() })()
	return collect(channel.NewConn(conn), c.Argv[0])
}

// End takes the rehearsal away.
func (r *Rehearsal) End(ctx context.Context) error {
	return r.m.Destroy(context.WithoutCancel(ctx), r.sandbox.info.ID)
}
