package e2b

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// callKey carries the call in a request's context.
type callKey struct{}

func withCall(r *http.Request, c *call) *http.Request {
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	c.Request = r
	return r
}

// callOf is the call of a request that ServeHTTP let through.
func callOf(r *http.Request) *call {
	c, _ := r.Context().Value(callKey{}).(*call) // ServeHTTP is the only way to the routes
	c.Request = r
	return c
}

// writeError answers with the error object of the HTTP routes.
func writeError(w http.ResponseWriter, status int, message string) {
	writeObject(w, status, errorObject{Code: status, Message: message})
}

// writeObject answers with a short object of ours.
func writeObject(w http.ResponseWriter, status int, v any) {
	backend.WriteError(w, "application/json", status, v)
}

// writeAnswer answers with what a handler has found, which takes room.
func writeAnswer(ctx context.Context, w http.ResponseWriter, status int, v any) error {
	return backend.WriteJSON(ctx, w, status, v)
}

// writeGone answers for a sandbox that can't: 502 and the text are what makes the SDKs say that it was not
// found, timed out or is paused. Asking again does not help.
func writeGone(w http.ResponseWriter, d *Data, id string) {
	message := TextNotFound
	if _, err := d.living(id); errors.Is(err, fault.ErrConflict) {
		message = TextPaused
		if box, err := backend.Find(d.cfg.Sandboxes, id, backend.AnyOwnersViewer); err == nil && box.SilentAtPause() {
			message = TextSilent
		}
	}
	w.Header().Set(headerShouldRetry, "false")
	writeObject(w, http.StatusBadGateway, map[string]any{"sandboxId": id, "message": message, "code": http.StatusBadGateway})
}

// writeRefusal answers what comes before any route: as a Connect error where the
// path is a call's, as an error object elsewhere.
func writeRefusal(w http.ResponseWriter, r *http.Request, err error) {
	f := failureOf(err)
	if isRPCPath(r.URL.Path) {
		tellRetry(w.Header(), f.Code.status(), err)
		writeObject(w, f.Code.status(), f)
		return
	}
	status := restStatus(err)
	tellRetry(w.Header(), status, err)
	writeError(w, status, f.Message)
}

func isRPCPath(path string) bool {
	return strings.HasPrefix(path, processService) || strings.HasPrefix(path, filesystemService)
}

// restStatus is the HTTP routes' status for an error.
func restStatus(err error) int {
	switch f := failureOf(err); f.Code {
	case codePrecondition:
		return http.StatusConflict
	case codeExhausted:
		if full, ok := errors.AsType[*channel.FileError](err); ok && full.Code == channel.CodeNoSpace {
			return http.StatusInsufficientStorage
		}
		return http.StatusTooManyRequests
	default:
		return f.Code.status()
	}
}
