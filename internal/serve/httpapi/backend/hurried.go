package backend

import (
	"net/http"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

// unreadTimeout is how long a client may take to send the rest of a body that its
// request's handler did not read.
const unreadTimeout = time.Second

// Hurried is a handler whose answer does not wait for a client that does not send its
// whole body, and arrives where the connection is a Lingering listener's. net/http reads the rest before it answers, if that is little and for as
// long as it takes: who is refused would not hear of it, and could hold a connection for
// ever, and all that there may be. An answer of more than a few KiB is not hurried.
//
// A request's part of a Room and an Underway is given back when the server keeps nothing of it any more.
func Hurried(next http.Handler) http.Handler {
	return httphead.Behind(httphead.Untaken, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		noteBody(r.Context(), r.ContentLength != 0 && r.ProtoMajor < 2)
		if r.ContentLength != 0 {
			// A writer of tests has no connection.
			defer func() { _ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadTimeout)) }()
		}
		next.ServeHTTP(w, r)
	}))
}
