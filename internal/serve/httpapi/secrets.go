package httpapi

import (
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
)

// listSecrets tells which secrets a policy of the caller's can name, and not what they are.
func (s sandboxRoutes) listSecrets(w http.ResponseWriter, r *http.Request) error {
	declared := []api.Secret{}
	for _, d := range s.cfg.Secrets.Declared() {
		declared = append(declared, api.Secret{Name: d.Name, Hosts: d.Hosts})
	}
	return writeJSON(w, r, http.StatusOK, declared)
}
