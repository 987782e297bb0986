package requests

import (
	"context"
	"errors"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/budget"
)

// Exchange sees what a connection's requests and their answers are. It may change them.
// A connection's requests can be under way side by side.
type Exchange interface {
	// Outgoing sees a request that was judged, just before it is sent. Fields that it sets are
	// sent: fields of the client's own Connection header have been taken out already. It must not
	// change where the request goes. An error ends the request: a *Refusal is recorded and told the
	// client, any other is told in general words.
	Outgoing(*http.Request) error
	// Incoming sees an answer before any of it is handed in. An error takes its place,
	// as with Outgoing. Answers below 200 are not seen.
	Incoming(*http.Response) error
}

// Exchanges gives the Exchange of a connection; nil: there is nothing to see to. An error
// refuses all its requests.
type Exchanges interface {
	Exchange(ctx context.Context, of Connection) (Exchange, error)
}

// Connection is one whose requests are judged.
type Connection struct {
	Sandbox string
	Name    string // of the host, canonical; the request's authority and the TLS name are this
	Port    int
	TLS     bool // the client's TLS is ended, and the host's certificate was verified
	// Searches bounds how many bodies of the sandbox are in memory to be looked through: see
	// TakePlace.
	Searches chan struct{}
	// Computing has a place for each of the sandbox's bodies in which patterns are looked for at the
	// moment: that takes a processor. nil: there are any number.
	Computing chan struct{}
	// Memory is the sandbox's share of the gateway's; nil: it has no bound.
	Memory *budget.Budget
}

// Refusal is why a request is not passed on.
type Refusal struct {
	Rule   string // one of the door's
	Reason string // for the client, and for the record
	Status int    // 0: 403
	// Recorded tells that it is on record, and that Reason is the whole sentence.
	Recorded bool
	// pushed is what it refuses, if that is a push; its client is told in git's own way.
	pushed *gitwire.Pushed
}

// Error implements error.
func (r *Refusal) Error() string { return r.Reason }

func asRefusal(err error) (*Refusal, bool) { return errors.AsType[*Refusal](err) }

// refusalOf is what an error is to the client.
func refusalOf(err error) *Refusal {
	if refusal, ok := asRefusal(err); ok {
		return refusal
	}
	return &Refusal{Reason: "the request could not be judged", Status: http.StatusServiceUnavailable}
}
