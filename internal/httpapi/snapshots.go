package httpapi

import (
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
)

// ownSnapshots are those that the caller sees.
func (s *Server) ownSnapshots(r *http.Request) ([]sandbox.Snapshot, error) {
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
		if by.sees(snap.Owner) {
			own = append(own, snap)
		}
	}
	return own, nil
}

func (s *Server) listSnapshots(w http.ResponseWriter, r *http.Request) error {
	own, err := s.ownSnapshots(r)
	if err != nil {
		return err
	}
	views := make([]api.Snapshot, 0, len(own))
	for _, snap := range own {
		views = append(views, viewSnapshot(snap))
	}
	return writeJSON(w, http.StatusOK, views)
}

// snapshotOf finds the caller's snapshot by id or by name: an id first, then a
// name of the caller's own, then, for who sees all, of anybody's.
func (s *Server) snapshotOf(r *http.Request) (sandbox.Snapshot, error) {
	ref := r.PathValue("ref")
	own, err := s.ownSnapshots(r)
	if err != nil {
		return sandbox.Snapshot{}, err
	}
	by, err := callerOf(r.Context())
	if err != nil {
		return sandbox.Snapshot{}, err
	}
	for _, fits := range []func(sandbox.Snapshot) bool{
		func(snap sandbox.Snapshot) bool { return snap.ID == ref },
		func(snap sandbox.Snapshot) bool { return snap.Name == ref && snap.Owner.Token == by.owner().Token },
		func(snap sandbox.Snapshot) bool { return snap.Name == ref },
	} {
		for _, snap := range own {
			if fits(snap) {
				return snap, nil
			}
		}
	}
	return sandbox.Snapshot{}, fault.New(fault.ErrNotFound, "there is no snapshot %.140q", ref)
}

func (s *Server) getSnapshot(w http.ResponseWriter, r *http.Request) error {
	snap, err := s.snapshotOf(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, viewSnapshot(snap))
}

func (s *Server) removeSnapshot(w http.ResponseWriter, r *http.Request) error {
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
	return api.Snapshot{
		ID: snap.ID, Name: snap.Name, Digest: snap.Digest, Contents: string(snap.Contents), Created: snap.Created,
		Bytes: snap.Bytes, Token: snap.Owner.Token, Sandbox: snap.Of.ID, Run: snap.Of.Run, Template: snap.Of.Template,
		Engine: snap.Of.Engine, Policy: snap.Of.PolicyDigest, Compressed: snap.Compressed,
	}
}
