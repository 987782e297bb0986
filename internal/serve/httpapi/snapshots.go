package httpapi

import (
	"net/http"
	"slices"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// snapshotRoutes are about copies of sandboxes.
type snapshotRoutes struct{ *desk }

// ownSnapshots are those that the caller sees.
func (s snapshotRoutes) ownSnapshots(r *http.Request) ([]sandbox.Snapshot, error) {
	by, err := callerOf(r.Context())
	if err != nil {
		return nil, err
	}
	if s.cfg.Sandboxes == nil {
		return nil, errNotWired
	}
	all, err := s.cfg.Sandboxes.Snapshots(r.Context())
	if err != nil {
		return nil, err
	}
	var own []sandbox.Snapshot
	for _, snap := range all {
		if by.seesSnapshot(snap.Owner) {
			own = append(own, snap)
		}
	}
	return own, nil
}

func (s snapshotRoutes) listSnapshots(w http.ResponseWriter, r *http.Request) error {
	own, err := s.ownSnapshots(r)
	if err != nil {
		return err
	}
	views := make([]api.Snapshot, 0, len(own))
	for _, snap := range own {
		views = append(views, viewSnapshot(snap))
	}
	return writeJSON(w, r, http.StatusOK, views)
}

// snapshotOf finds the caller's snapshot by id or by name: an id first, then a
// name of the caller's own, then, for who sees all, the one that has it.
func (s snapshotRoutes) snapshotOf(r *http.Request) (sandbox.Snapshot, error) {
	ref := r.PathValue("ref")
	own, err := s.ownSnapshots(r)
	if err != nil {
		return sandbox.Snapshot{}, err
	}
	by, err := callerOf(r.Context())
	if err != nil {
		return sandbox.Snapshot{}, err
	}
	var named []sandbox.Snapshot
	for _, snap := range own {
		switch {
		case snap.ID == ref:
			return snap, nil
		case !slices.Contains(snap.Names(), ref):
		case snap.Owner.Token == by.ownerOf().Token:
			named = []sandbox.Snapshot{snap}
		case len(named) != 1 || named[0].Owner.Token != by.ownerOf().Token:
			named = append(named, snap)
		}
	}
	switch len(named) {
	case 0:
		return sandbox.Snapshot{}, fault.New(fault.ErrNotFound, "there is no snapshot %.140q", ref)
	case 1:
		return named[0], nil
	default:
		return sandbox.Snapshot{}, fault.New(fault.ErrConflict, "%d tokens have a snapshot %.140q; name one by its id, such as %s", len(named), ref, named[0].ID)
	}
}

func (s snapshotRoutes) getSnapshot(w http.ResponseWriter, r *http.Request) error {
	snap, err := s.snapshotOf(r)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, viewSnapshot(snap))
}

func (s snapshotRoutes) removeSnapshot(w http.ResponseWriter, r *http.Request) error {
	snap, err := s.snapshotOf(r)
	if err != nil {
		return err
	}
	if err := s.cfg.Sandboxes.RemoveSnapshot(r.Context(), snap.Owner.Token, snap.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func viewSnapshot(snap sandbox.Snapshot) api.Snapshot {
	view := api.Snapshot{
		ID: snap.ID, Name: snap.Name, Digest: snap.Digest, Contents: string(snap.Contents), Created: snap.Created,
		Bytes: snap.Bytes, Token: snap.Owner.Token, Sandbox: snap.Of.ID, Run: snap.Of.Run, Template: snap.Of.Template,
		Engine: snap.Of.Engine, Policy: snap.Of.PolicyDigest, Compressed: snap.Compressed,
	}
	if snap.Built != nil {
		for _, p := range snap.Built.System {
			view.System = append(view.System, api.TemplatePackage{Name: p.Name, Version: p.Version, Architecture: p.Architecture, SHA256: p.SHA256})
		}
	}
	return view
}
