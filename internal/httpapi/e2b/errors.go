package e2b

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/httpapi/backend"
)

// maxBody bounds a request's JSON.
const maxBody = 1 << 20

// refuse answers with an error's status and sentence.
func (c *Control) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := fault.KindOf(err).Status
	if wait := backend.RetrySeconds(err); wait > 0 && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		w.Header().Set("Retry-After", strconv.Itoa(wait))
	}
	if status >= http.StatusInternalServerError { // what caused it is not for clients
		c.cfg.Log.ErrorContext(r.Context(), "a request failed", "path", r.URL.Path, "err", err)
	}
	writeError(w, status, sentence(err))
}

// sentence is what a client may read of an error; causes are the operator's.
func sentence(err error) string {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f.Sentence
	}
	if errors.Is(err, fault.ErrInvalid) {
		return err.Error() // a policy's problems, which are written for people
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it took too long"
	}
	return "something inside failed; the daemon's log has more"
}

func notFound(what, name string) error {
	return fault.New(fault.ErrNotFound, "there is no %s %q", what, excerpt.Of(name, 80))
}

// readJSON decodes a body strictly. No body is an empty object.
func readJSON(r *client, v any) error {
	if _, err := backend.ReadJSON(r.Request, maxBody, v); err != nil {
		return err
	}
	return backend.CheckCounts(v)
}
