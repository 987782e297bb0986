package copies

import (
	"context"
	"log/slog"
	"regexp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/snapshots"
)

// Config is what a Library works with. All fields are needed but Store.
type Config struct {
	Store      *snapshots.Store // nil: no copies are made
	Blueprints *Blueprints
	Engines    map[string]engine.Engine
	Keeper     *keeper.Client
	Door       *admission.Controller
	Rules      mountpolicy.Rules
	// AgentDir holds the guest agent's files of today.
	AgentDir string
	Log      *slog.Logger
}

// Library has the snapshots, with what people are told of them, and makes images of sandboxes. Safe
// for concurrent use.
type Library struct {
	cfg    Config
	drafts drafts
}

// NewLibrary makes one of what its store has.
func NewLibrary(cfg Config) *Library { return &Library{cfg: cfg} }

func (l *Library) openStore() (*snapshots.Store, error) {
	if l.cfg.Store == nil {
		return nil, fault.New(fault.ErrUnavailable, "this daemon keeps no copies of sandboxes")
	}
	return l.cfg.Store, nil
}

// Lease finds a snapshot of an owner's by id or name, and has it lie plain, which takes
// long if it was compressed.
func (l *Library) Lease(ctx context.Context, owner, ref string) (*snapshots.Lease, error) {
	store, err := l.openStore()
	if err != nil {
		return nil, err
	}
	return store.Lease(ctx, owner, ref)
}

var snapshotName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}(:[A-Za-z0-9][A-Za-z0-9._-]{0,127})?$`)

// checkNames refuses what can't be a snapshot's name.
func checkNames(names []string) error {
	for _, name := range names {
		if !snapshotName.MatchString(name) {
			return fault.Invalid("the snapshot's name %.80q is not valid: up to 128 letters, digits, dots, dashes and underscores, starting with a letter or digit, and a tag of the same form behind a colon if you like", name)
		}
	}
	return nil
}

// Name gives a snapshot of an owner's further names, which others of the owner's
// lose; it is on record first.
func (l *Library) Name(ctx context.Context, owner, id string, names []string) (Snapshot, error) {
	if err := checkNames(names); err != nil {
		return Snapshot{}, err
	}
	return l.rename(ctx, owner, id, names, true, (*snapshots.Store).Name)
}

// Unname takes names from a snapshot of an owner's, which is on record first.
func (l *Library) Unname(ctx context.Context, owner, id string, names []string) (Snapshot, error) {
	return l.rename(ctx, owner, id, names, false, (*snapshots.Store).Unname)
}

func (l *Library) rename(ctx context.Context, owner, id string, names []string, given bool, change func(s *snapshots.Store, owner, id string, names []string) (snapshots.Snapshot, error)) (Snapshot, error) {
	store, err := l.openStore()
	if err != nil {
		return Snapshot{}, err
	}
	of, err := store.Look(owner, id)
	if err != nil {
		return Snapshot{}, err
	}
	if err := store.CheckNames(names); err != nil {
		return Snapshot{}, err
	}
	if given {
		if err := store.CheckName(owner, of.ID, names); err != nil { // it would be on record, and not be so
			return Snapshot{}, err
		}
	}
	named := admission.Copy{Snapshot: of.ID, Digest: of.Digest, Contents: string(of.Contents)}
	undo, err := l.cfg.Door.SnapshotNamed(ctx, owner, named, names, given)
	if err != nil {
		return Snapshot{}, err
	}
	now, err := change(store, owner, of.ID, names)
	if err != nil { // a full disk, or another request came in between
		return Snapshot{}, undo(err)
	}
	return snapshotOf(now)
}

// List returns all of them, the oldest first.
func (l *Library) List() []Snapshot {
	all := []Snapshot{}
	if l.cfg.Store == nil {
		return all
	}
	for _, k := range l.cfg.Store.List() {
		snap, err := snapshotOf(k)
		if err != nil {
			l.cfg.Log.Error("a snapshot is not listed", "snapshot", k.ID, "err", err)
			continue
		}
		all = append(all, snap)
	}
	return all
}

// Remove removes a snapshot by id or name, which is on record first; owner ""
// is the Unix socket's, which may remove all by id. fault.ErrConflict while a sandbox
// is being made from it.
func (l *Library) Remove(ctx context.Context, owner, ref string) error {
	store, err := l.openStore()
	if err != nil {
		return err
	}
	going, err := store.Find(owner, ref)
	if err != nil {
		return err
	}
	undo, err := l.cfg.Door.SnapshotRemoved(ctx, owner, admission.Copy{
		Snapshot: going.ID, Name: going.Name, Digest: going.Digest, Contents: string(going.Contents), Bytes: going.Bytes,
	})
	if err != nil {
		return err
	}
	gone, err := store.Remove(owner, going.ID)
	if err != nil {
		return undo(err)
	}
	l.cfg.Log.Info("a snapshot was removed", "snapshot", gone.ID, "owner", owner)
	return nil
}
