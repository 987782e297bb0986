package sandbox

import (
	"context"
	"regexp"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/snapshots"
)

// checkNames refuses what can't be a snapshot's name.
func checkNames(names []string) error {
	for _, name := range names {
		if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}(:[A-Za-z0-9][A-Za-z0-9._-]{0,127})?$`).MatchString(name) {
			return fault.Invalid("the snapshot's name %.80q is not valid: up to 128 letters, digits, dots, dashes and underscores, starting with a letter or digit, and a tag of the same form behind a colon if you like", name)
		}
	}
	return nil
}

// NameSnapshot gives a snapshot of an owner's further names, which others of the owner's
// lose; it is on record first.
func (m *Manager) NameSnapshot(ctx context.Context, owner, id string, names []string) (Snapshot, error) {
	if err := checkNames(names); err != nil {
		return Snapshot{}, err
	}
	return m.rename(ctx, owner, id, names, true, (*snapshots.Store).Name)
}

// UnnameSnapshot takes names from a snapshot of an owner's, which is on record first.
func (m *Manager) UnnameSnapshot(ctx context.Context, owner, id string, names []string) (Snapshot, error) {
	return m.rename(ctx, owner, id, names, false, (*snapshots.Store).Unname)
}

func (m *Manager) rename(ctx context.Context, owner, id string, names []string, given bool, change func(s *snapshots.Store, owner, id string, names []string) (snapshots.Snapshot, error)) (Snapshot, error) {
	store, err := m.store()
	if err != nil {
		return Snapshot{}, err
	}
	of, err := store.Look(owner, id)
	if err != nil {
		return Snapshot{}, err
	}
	if err := m.cfg.Door.SnapshotNamed(ctx, owner, admission.Copy{Snapshot: of.ID, Digest: of.Digest, Contents: string(of.Contents)}, names, given); err != nil {
		return Snapshot{}, err
	}
	now, err := change(store, owner, of.ID, names)
	if err != nil {
		return Snapshot{}, err
	}
	return snapshotOf(now)
}
