package httpapi

import "net/http"

func (s *Server) reloadConfig(w http.ResponseWriter, r *http.Request) error {
	who, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	if s.cfg.Reload == nil {
		return errNotWired
	}
	done, err := s.cfg.Reload(r.Context(), who.name)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, done)
}
