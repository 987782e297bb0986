package e2b

import (
	"context"
	"errors"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// maxBody bounds a request's JSON.
const maxBody = 1 << 20

// answerError answers with an error's status and sentence.
func (c *Control) answerError(w http.ResponseWriter, r *http.Request, err error) {
	status := fault.KindOf(err).Status
	tellRetry(w.Header(), status, err)
	if status >= http.StatusInternalServerError { // what caused it is not for clients
		c.cfg.Log.ErrorContext(r.Context(), "a request failed", "path", r.URL.Path, "err", err)
	}
	writeObject(w, status, errorObject{Code: status, Message: errorSentence(err), ErrorCode: errorCode(err)})
}

// errorObject is an error as the protocol writes it.
type errorObject struct {
	Code      int    `json:"code"`
	Message   string `json:"message"`
	ErrorCode string `json:"error_code,omitempty"`
}

// errSilent is the cause of a refusal to bring back an agent that did not answer.
var errSilent = errors.New("the sandbox's agent did not answer when it was paused")

// errorCode is the protocol's word for what a client can tell apart by it; "": it has none.
func errorCode(err error) string {
	switch {
	case errors.Is(err, sandbox.ErrKeyMismatch):
		return "idempotency_request_mismatch"
	case errors.Is(err, sandbox.ErrKeyUnderway):
		return "idempotency_in_progress"
	case errors.Is(err, errSilent):
		return "sandbox_snapshot_guest_agent_unresponsive"
	}
	return ""
}

// errorSentence is what a client may read of an error; causes are the operator's.
func errorSentence(err error) string {
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
	return fault.New(fault.ErrNotFound, "there is no %s %q", what, text.Shorten(name, 80))
}

// readJSON decodes a body strictly. No body is an empty object.
func readJSON(r *keyedRequest, v any) error {
	_, err := backend.ReadJSON(r.Request, maxBody, v)
	return err
}
