package httpapi

import (
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
)

// listHomes tells a user of the host which homes are theirs.
func (s sandboxRoutes) listHomes(w http.ResponseWriter, r *http.Request) error {
	who, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	if s.cfg.Homes == nil {
		return errNotWired
	}
	all, err := s.cfg.Homes.List(r.Context(), who.uid)
	if err != nil {
		return err
	}
	listed := []api.KeptHome{}
	for _, k := range all {
		listed = append(listed, api.KeptHome{Name: k.Name, Keeps: k.Places, Bytes: k.Bytes, Used: k.Used, Sandbox: k.Sandbox})
	}
	return writeJSON(w, r, http.StatusOK, listed)
}

// removeHome removes one of them.
func (s sandboxRoutes) removeHome(w http.ResponseWriter, r *http.Request) error {
	who, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	if s.cfg.Homes == nil {
		return errNotWired
	}
	if err := s.cfg.Homes.Remove(agenthome.Home{UID: who.uid, Name: r.PathValue("name")}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
