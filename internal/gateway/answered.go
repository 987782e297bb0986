package gateway

import (
	"errors"
	"io"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
)

// maxBody bounds a request's body, which is thrown away.
const maxBody = 1 << 20

// answer gives the protocol's own answer. What the client sent with its request
// is read so that the connection can be used again, and never looked at.
func (q *query) answer() {
	if q.route.Answer == nil {
		q.refuse(ecosystem.Refusal{Cause: ecosystem.NoSuchRoute, Reason: "the gateway has no such page"})
		return
	}
	if !q.drain() {
		q.w.Header().Set("Connection", "close") // the rest is not read
		q.send(ecosystem.Problem(http.StatusRequestEntityTooLarge, ecosystem.Refusal{
			Route: q.route.Kind, Cause: ecosystem.Malformed, Reason: "the body of a request to the gateway has at most 1 MiB",
		}))
		return
	}
	q.send(*q.route.Answer)
}

// drain reads the body to its end; false: it is too large, or has none.
func (q *query) drain() bool {
	if q.r.ContentLength > maxBody {
		return false // not even asked for, if the client waits for that
	}
	_, err := io.CopyN(io.Discard, q.r.Body, maxBody+1)
	return errors.Is(err, io.EOF)
}
