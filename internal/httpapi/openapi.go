package httpapi

import (
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
)

// openAPI answers with the description of all that is here.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	if _, err := w.Write(api.OpenAPI()); err != nil {
		return errAnswered
	}
	return nil
}
