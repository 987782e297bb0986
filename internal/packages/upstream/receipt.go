package upstream

import (
	"context"
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Itself is the guest (see package fairqueue) for whom a gateway asks what no sandbox has it
// ask: where an upstream's files are. A question for nobody is refused, so that no
// caller can forget to say for whom it asks.
const Itself = "the gateway itself"

// ErrUnrecorded is the cause of the error of a question that was not asked, since it could
// not be put on record.
var ErrUnrecorded = errors.New("the question is not on record")

type unrecorded struct{ err error }

func (u *unrecorded) Error() string   { return u.err.Error() }
func (u *unrecorded) Unwrap() []error { return []error{u.err, ErrUnrecorded} }

// Subject is what a question is about, for its record.
type Subject struct {
	Package pkgref.Ref // zero: no package
	File    string
}

// Question is one that is about to leave for an upstream because of a sandbox.
type Question struct {
	Sandbox string
	Subject
	URL string
}

// Recorder puts questions on record. The record is durable when Asked returns without an
// error, whether or not anybody still waits for the question's answer by then.
type Recorder interface {
	Asked(ctx context.Context, q Question) error
}

// Receipt proves that a question is on record. Record makes one, and nothing is sent to an
// upstream without.
type Receipt struct{ of *Client }

// Record puts on record that the upstream is about to be asked, once for each sandbox for
// which ctx is. One receipt is good for several questions only where all but the first
// follow from what the upstream answers. An error means that nothing may be sent.
func (c *Client) Record(ctx context.Context, about Subject, location string) (Receipt, error) {
	var failed error
	recorded := false
	for _, guest := range fairqueue.Of(ctx).Guests() {
		err := c.recordFor(ctx, guest, about, location)
		recorded = recorded || err == nil // one sandbox that may ask nothing more keeps nothing from the others
		if err != nil {
			failed = err
		}
	}
	if !recorded {
		return Receipt{}, &unrecorded{failed}
	}
	return Receipt{of: c}, nil
}

func (c *Client) recordFor(ctx context.Context, guest string, about Subject, location string) error {
	switch guest {
	case Itself:
		return nil
	case "":
		return fault.Invalid("an upstream is asked for nobody")
	}
	return c.recorder.Asked(ctx, Question{Sandbox: guest, Subject: about, URL: location})
}

// receipt is the one that a caller has already, or a new one.
func (c *Client) receipt(ctx context.Context, have Receipt, about Subject, location string) (Receipt, error) {
	if have.of == c {
		return have, nil
	}
	return c.Record(ctx, about, location)
}
