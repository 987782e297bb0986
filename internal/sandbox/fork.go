package sandbox

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/journal"
)

const (
	maxForks = 100
	// forksAtOnce is how many copies of a fork start at one time: starting one is
	// work for the processor.
	forksAtOnce = 2
)

// Fork makes count running copies of a running sandbox, which goes on: of its
// memory and files, under its policy and lockfiles, for its owner. Each is a
// sandbox or the reason why there is none. An error means that there is no copy at
// all; it is that of Snapshot.
func (m *Manager) Fork(ctx context.Context, id string, count int, l Lifetime) (_ []Forked, err error) {
	ctx, done := m.observe(ctx, VerbFork, id)
	defer func() { done(nil, "", err) }()
	if count < 1 || count > maxForks {
		return nil, fault.Invalid("a fork makes 1 to %d copies, not %d", maxForks, count)
	}
	s, err := m.Get(id)
	if err != nil {
		return nil, err
	}
	if err := m.cfg.Door.Recheck(ctx, id); err != nil { // before anything is written for copies that can't start
		return nil, cantUse("the sandbox "+id+" can't be forked", err)
	}
	draft, from, err := m.write(ctx, s, journal.NewID("fork", 8), engine.ContentsMemory, false)
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
			copies[i].Err = errand.Try(func() (err error) {
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
func forkRequest(s *Sandbox, from *origin, l Lifetime) Request {
	return Request{
		Task: s.info.Task, User: s.info.User, Linger: s.info.Linger, Lifetime: l, Owner: s.info.Owner, Labels: s.info.Labels, from: from,
	}
}
