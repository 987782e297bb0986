package sandbox

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/copies"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// Snapshot writes a copy of a running sandbox, which goes on, from which others can
// be made. Contents "" is memory. A newer snapshot of the same owner and name takes
// the name over. fault.ErrConflict for a sandbox that does not run, only weighs
// installs, or works on files of the host: these would be in no snapshot, and two
// copies would write to them. fault.ErrExhausted where there is no room.
func (m *Manager) Snapshot(ctx context.Context, id, name string, contents engine.Contents) (_ Snapshot, err error) {
	keep := Keep{Contents: contents}
	if name != "" {
		keep.Names = []string{name}
	}
	return m.Keep(ctx, id, keep)
}

// Keep is Snapshot with several names, or of a template's build.
func (m *Manager) Keep(ctx context.Context, id string, keep Keep) (_ Snapshot, err error) {
	ctx, done := m.spans.beginSpan(ctx, VerbSnapshot, id)
	defer func() { done(nil, "", err) }()
	s, err := m.Get(id)
	if err != nil {
		return Snapshot{}, err
	}
	defer m.documents.holdLock(s.info.LockDigest)() // the sandbox may be gone before the snapshot is there
	return m.copies.Keep(ctx, m.sourceOf(s), keep)
}

// sourceOf is what making a copy needs of a sandbox.
func (m *Manager) sourceOf(s *Sandbox) copies.Source {
	return copies.Source{
		Info: s.info, Instance: s.instance, Commands: s.commands, Steadily: s.waits.Steadily,
		State: func() State { state, _ := s.State(); return state },
		Enter: func(ctx context.Context) (leave func(), err error) { return m.tracker.snapshotting(ctx, s) },
	}
}

// NameSnapshot gives a snapshot of an owner's further names, which others of the owner's
// lose; it is on record first.
func (m *Manager) NameSnapshot(ctx context.Context, owner, id string, names []string) (Snapshot, error) {
	return m.copies.Name(ctx, owner, id, names)
}

// UnnameSnapshot takes names from a snapshot of an owner's, which is on record first.
func (m *Manager) UnnameSnapshot(ctx context.Context, owner, id string, names []string) (Snapshot, error) {
	return m.copies.Unname(ctx, owner, id, names)
}

// Snapshots returns all of them, the oldest first.
func (m *Manager) Snapshots(context.Context) ([]Snapshot, error) { return m.copies.List(), nil }

// RemoveSnapshot removes a snapshot by id or name, which is on record first; owner ""
// is the Unix socket's, which may remove all by id. fault.ErrConflict while a sandbox
// is being made from it.
func (m *Manager) RemoveSnapshot(ctx context.Context, owner, ref string) error {
	if err := m.copies.Remove(ctx, owner, ref); err != nil {
		return err
	}
	m.remover.sweepLocks(context.WithoutCancel(ctx))
	return nil
}

const (
	maxForks = 100
	// forksAtOnce is how many copies of a fork start at one time: starting one is
	// work for the processor.
	forksAtOnce = 2
)

// Forked is one copy of a fork: a sandbox, or why there is none.
type Forked struct {
	Sandbox *Sandbox
	Err     error
}

// Fork makes count running copies of a running sandbox, which goes on: of its
// memory and files, under its policy and lockfiles, for its owner. Each is a
// sandbox or the reason why there is none. An error means that there is no copy at
// all; it is that of Snapshot.
func (m *Manager) Fork(ctx context.Context, id string, count int, l Lifetime) (_ []Forked, err error) {
	ctx, done := m.spans.beginSpan(ctx, VerbFork, id)
	defer func() { done(nil, "", err) }()
	if count < 1 || count > maxForks {
		return nil, fault.Invalid("a fork makes 1 to %d copies, not %d", maxForks, count)
	}
	s, err := m.Get(id)
	if err != nil {
		return nil, err
	}
	if err := m.cfg.Door.Recheck(ctx, id); err != nil { // before anything is written for copies that can't start
		return nil, copies.CantUse("the sandbox "+id+" can't be forked", err)
	}
	defer m.documents.holdLock(s.info.LockDigest)()
	draft, from, err := m.copies.Write(ctx, m.sourceOf(s), journal.NewID("fork", 8), engine.ContentsMemory, false)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := draft.Drop(); err != nil {
			m.cfg.Log.Error("the image of a fork can't be removed", "sandbox", id, "err", err)
		}
	}()
	faultpoint.Hit(faultpoint.ForkImaged)
	copies := make([]Forked, count)
	var group errgroup.Group
	group.SetLimit(forksAtOnce)
	for i := range copies {
		group.Go(func() error {
			copies[i].Err = safego.Try(func() (err error) {
				copies[i].Sandbox, err = m.Create(ctx, forkRequest(s, from, l))
				return err
			})
			faultpoint.Hit(faultpoint.ForkRestored)
			return nil
		})
	}
	_ = group.Wait() // each copy has its own error
	return copies, nil
}

// forkRequest asks for a copy that is like its source.
func forkRequest(s *Sandbox, from *copies.Origin, l Lifetime) Request {
	if was := s.Lifetime().Lease; was > 0 { // nobody has come to the copy yet
		l.Lease = keptOr(l.Lease, max(was, betweenCommands))
	}
	return Request{
		Task: s.info.Task, User: s.info.User, Linger: s.info.Linger, Lifetime: l, Owner: s.info.Owner, Labels: s.info.Labels, from: from,
	}
}
