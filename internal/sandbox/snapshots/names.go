package snapshots

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// names are all that a snapshot has now: its maker's, unless that was taken over, and
// those that it was given. Needs the store's lock, as all of this file.
func (k *kept) names() []string {
	var all []string
	if k.manifest.Name != "" && !k.state.Overtaken {
		all = append(all, k.manifest.Name)
	}
	return append(all, k.state.Also...)
}

// without is what may change of a snapshot that loses names, and whether it had one.
func (k *kept) without(names []string) (mutable, bool) {
	state := k.state
	state.Also = slices.DeleteFunc(slices.Clone(state.Also), func(n string) bool { return slices.Contains(names, n) })
	if k.manifest.Name != "" && slices.Contains(names, k.manifest.Name) {
		state.Overtaken = true
	}
	return state, state.Overtaken != k.state.Overtaken || len(state.Also) != len(k.state.Also)
}

// take takes names of a snapshot from all others of its owner.
func (s *Store) take(id string, names []string) {
	for other, k := range s.known {
		if other == id || k.manifest.Owner != s.known[id].manifest.Owner {
			continue
		}
		state, had := k.without(names)
		if !had {
			continue
		}
		k.state = state
		if err := writeState(filepath.Join(s.dir, other), state); err != nil {
			s.log.Error("after a restart two snapshots may have one name", "snapshot", other, "err", err)
		}
	}
}

// settleNames is for a crash that came between a publication and what older snapshots
// lose by it: the newest has the name.
func (s *Store) settleNames() {
	newest := slices.SortedFunc(maps.Values(s.known), func(a, b *kept) int {
		return cmp.Or(b.manifest.Created.Compare(a.manifest.Created), cmp.Compare(a.manifest.ID, b.manifest.ID))
	})
	for _, k := range newest {
		s.take(k.manifest.ID, k.names())
	}
}

// Name gives a snapshot further names, which others of its owner lose. The id is one
// of the owner's.
func (s *Store) Name(owner, id string, names []string) (Snapshot, error) {
	if err := s.CheckNames(names); err != nil {
		return Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, state, err := s.withNames(owner, id, names)
	if err != nil {
		return Snapshot{}, err
	}
	s.take(k.manifest.ID, names) // first: a crash leaves a name nobody's, and never two snapshots'
	return s.change(k, state)
}

// CheckName says whether Name would give a snapshot these names, and changes nothing.
func (s *Store) CheckName(owner, id string, names []string) error {
	if err := s.CheckNames(names); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, err := s.withNames(owner, id, names)
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

// withNames is a snapshot of an owner's, and what may change of it if it gets further names. Needs the lock.
func (s *Store) withNames(owner, id string, names []string) (*kept, mutable, error) {
	k, err := s.find(owner, id)
	if err != nil {
		return nil, mutable{}, err
	}
	state := k.state
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
		return nil, mutable{}, fault.New(fault.ErrExhausted, "the snapshot %s would have %d names; at most %d", k.manifest.ID, len(state.Also), maxNames)
	}
	return k, state, nil
}

// maxNames of one snapshot, beside its maker's.
const maxNames = 64

// Unname takes names from a snapshot; it may be left without any.
func (s *Store) Unname(owner, id string, names []string) (Snapshot, error) {
	if err := s.CheckNames(names); err != nil {
		return Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.find(owner, id)
	if err != nil {
		return Snapshot{}, err
	}
	state, had := k.without(names)
	if !had {
		return k.view(), nil
	}
	return s.change(k, state)
}

func (s *Store) change(k *kept, state mutable) (Snapshot, error) {
	if err := writeState(filepath.Join(s.dir, k.manifest.ID), state); err != nil {
		return Snapshot{}, fault.Wrap(fault.ErrUnavailable, err, "the names of the snapshot %s can't be changed", k.manifest.ID)
	}
	k.state = state
	return k.view(), nil
}
