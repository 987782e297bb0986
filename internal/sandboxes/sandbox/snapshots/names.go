package snapshots

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// listNames lists all names that a snapshot has now: its maker's, unless that was taken over, and
// those that it was given. Needs the store's lock, as without and takeNames do.
func (k *keptSnapshot) listNames() []string {
	var all []string
	if k.manifest.Name != "" && !k.state.Overtaken {
		all = append(all, k.manifest.Name)
	}
	return append(all, k.state.Also...)
}

// withoutNames is what may change of a snapshot that loses names, and whether it had one.
func (k *keptSnapshot) withoutNames(names []string) (mutable, bool) {
	state := k.state
	state.Also = slices.DeleteFunc(slices.Clone(state.Also), func(n string) bool { return slices.Contains(names, n) })
	if k.manifest.Name != "" && slices.Contains(names, k.manifest.Name) {
		state.Overtaken = true
	}
	return state, state.Overtaken != k.state.Overtaken || len(state.Also) != len(k.state.Also)
}

// takeTurn waits until nobody else changes the names of an owner's snapshots.
func (s *Store) takeTurn(owner string) (leave func()) {
	_, leave, err := s.naming.Take(fairqueue.For(context.Background(), owner))
	if err != nil { // not reached: the line has no end, and nobody gives it up
		return func() {}
	}
	return leave
}

// renamed is a snapshot whose names are others now, and what is to be written of that.
type renamed struct {
	of            *keptSnapshot
	before, state mutable
}

// takeNames takes names of a snapshot from all others of its owner, whose turn the caller has. writeLost
// brings that to the disk.
func (s *Store) takeNames(of *keptSnapshot, names []string) (lost []renamed) {
	for _, k := range s.known {
		if k == of || k.manifest.Owner != of.manifest.Owner {
			continue
		}
		if state, had := k.withoutNames(names); had {
			lost = append(lost, renamed{k, k.state, state})
			k.state = state
		}
	}
	return lost
}

// giveBack gives snapshots the names that they have lost to one that does not get them: else they would be nobody's,
// which no record says. The caller has the owner's turn.
func (s *Store) giveBack(lost []renamed) {
	s.mu.Lock()
	for i, one := range lost {
		one.of.state.Overtaken, one.of.state.Also = one.before.Overtaken, one.before.Also
		lost[i].state = one.of.state
	}
	s.mu.Unlock()
	for _, one := range lost {
		if err := s.writeChange(one); err != nil {
			s.log.Error("after a restart a name may be no snapshot's", "snapshot", one.of.manifest.ID, "err", err)
		}
	}
}

// writeLost writes down which names snapshots have lost.
func (s *Store) writeLost(lost []renamed) {
	for _, one := range lost {
		if err := s.writeChange(one); err != nil {
			s.log.Error("after a restart two snapshots may have one name", "snapshot", one.of.manifest.ID, "err", err)
		}
	}
}

// writeChange writes down what has changed of a snapshot; of one that was removed meanwhile, nothing.
func (s *Store) writeChange(one renamed) error {
	id := one.of.manifest.ID
	err := s.put(filepath.Join(s.dir, id), one.state)
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[id] != one.of {
		return nil
	}
	return err
}

// settleNames settles the names after a crash that came between a publication and what older snapshots
// lose by it: the newest has the name. Nobody else has the store yet.
func (s *Store) settleNames() {
	newest := slices.SortedFunc(maps.Values(s.known), func(a, b *keptSnapshot) int {
		return cmp.Or(b.manifest.Created.Compare(a.manifest.Created), cmp.Compare(a.manifest.ID, b.manifest.ID))
	})
	for _, k := range newest {
		s.writeLost(s.takeNames(k, k.listNames()))
	}
}

// toName finds a snapshot of an owner's, with the turn to change the names of all of that owner's, and has rename
// change them in memory before anybody can remove it.
func (s *Store) toName(owner, id string, rename func(*keptSnapshot) error) (k *keptSnapshot, leave func(), err error) {
	s.mu.Lock()
	k, err = s.findSnapshot(owner, id)
	s.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	leave = s.takeTurn(k.manifest.Owner)
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, err = s.findSnapshot(owner, id); err == nil { // else it has lost that name meanwhile, or is gone
		err = rename(k)
	}
	if err != nil {
		leave()
		return nil, nil, err
	}
	return k, leave, nil
}

// Name gives a snapshot further names, which others of its owner lose. The id is one
// of the owner's.
func (s *Store) Name(owner, id string, names []string) (Snapshot, error) {
	if err := s.CheckNames(names); err != nil {
		return Snapshot{}, err
	}
	var before, state mutable
	var lost []renamed
	k, leave, err := s.toName(owner, id, func(k *keptSnapshot) (err error) {
		if before, state, err = k.withNames(names); err == nil {
			lost = s.takeNames(k, names)
			k.state = state
		}
		return err
	})
	if err != nil {
		return Snapshot{}, err
	}
	defer leave()
	s.writeLost(lost) // first: a crash leaves a name nobody's, and never two snapshots'
	named, err := s.change(k, before, state)
	if err != nil {
		s.giveBack(lost)
	}
	return named, err
}

// CheckName says whether Name would give a snapshot these names, and changes nothing.
func (s *Store) CheckName(owner, id string, names []string) error {
	if err := s.CheckNames(names); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.findSnapshot(owner, id)
	if err == nil {
		_, _, err = k.withNames(names)
	}
	return err
}

// CheckNames refuses more names than a snapshot may have, before each is looked at under the lock that all
// owners' snapshots share.
func (*Store) CheckNames(names []string) error {
	if most := maxNames + 1; len(names) > most { // with its maker's
		return fault.New(fault.ErrExhausted, "%d names are given at once; a snapshot has at most %d", len(names), most)
	}
	return nil
}

// withNames is what may change of a snapshot that gets names, before and then.
func (k *keptSnapshot) withNames(names []string) (before, state mutable, err error) {
	before, state = k.state, k.state
	state.Also = slices.Clone(state.Also)
	for _, n := range names {
		switch {
		case n == k.manifest.Name:
			state.Overtaken = false
		case !slices.Contains(state.Also, n):
			state.Also = append(state.Also, n)
		}
	}
	if len(state.Also) > maxNames {
		return before, state, fault.New(fault.ErrExhausted, "the snapshot %s would have %d names; at most %d", k.manifest.ID, len(state.Also), maxNames)
	}
	return before, state, nil
}

// maxNames of one snapshot, beside its maker's.
const maxNames = 64

// Unname takes names from a snapshot; it may be left without any.
func (s *Store) Unname(owner, id string, names []string) (Snapshot, error) {
	if err := s.CheckNames(names); err != nil {
		return Snapshot{}, err
	}
	var before, state mutable
	var view Snapshot
	had := false
	k, leave, err := s.toName(owner, id, func(k *keptSnapshot) error {
		before, view = k.state, k.viewSnapshot()
		if state, had = k.withoutNames(names); had {
			k.state = state
		}
		return nil
	})
	if err != nil {
		return Snapshot{}, err
	}
	defer leave()
	if !had {
		return view, nil
	}
	return s.change(k, before, state)
}

// change writes down a snapshot's state, which it has in memory already; it has the one before again if
// that fails.
func (s *Store) change(k *keptSnapshot, before, state mutable) (Snapshot, error) {
	err := s.put(filepath.Join(s.dir, k.manifest.ID), state)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		k.state = before
		return Snapshot{}, fault.Wrap(fault.ErrUnavailable, err, "the names of the snapshot %s can't be changed", k.manifest.ID)
	}
	return k.viewSnapshot(), nil
}
