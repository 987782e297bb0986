package requests

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// TestAHandlerThatBeginsTooLateHasNotHandledItsRequest: a request over HTTP/2 whose handler the server starts when the
// connection is done with is judged by nobody, so it is on record as one that nobody was told of. The control is one
// whose handler began in time.
func TestAHandlerThatBeginsTooLateHasNotHandledItsRequest(t *testing.T) {
	for _, late := range []bool{false, true} {
		var told []string
		c := New(Config{Refuse: nil})
		u := newUnread(func(reason string) { told = append(told, reason) })
		u.brokeOff = func() bool { return false }
		u.begun.Add(1)
		if late {
			c.handlers.endHandlers()
		}
		func() {
			defer func() {
				got := recover()
				if err, _ := got.(error); late != errors.Is(err, http.ErrAbortHandler) {
					t.Errorf("late %v: it ends with %v", late, got)
				}
			}()
			// There is no connection: the control comes as far as where it needs one.
			c.handler(nil, u, nil).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		}()
		u.settleHTTP2()
		if late != slices.ContainsFunc(told, func(reason string) bool { return reason != "" }) {
			t.Errorf("late %v: on record is %q", late, told)
		}
	}
}
