// Package departure keeps a request as it leaves the gateway, with the secrets that were put
// into it, apart from the request that is judged, recorded and answered.
//
// All that tells something of a request (a record, a refusal, a log) has the one that the
// client sent. The one with the secrets is a copy in a value that nothing can read: its one
// way out is Send.
package departure

import (
	"log/slog"
	"net/http"
)

// Request is one as it leaves. Nothing but the transport reads it.
type Request struct {
	told   *http.Request // as its client sent it
	sealed *http.Request
}

// Of makes of a client's request the one that leaves: fill gets a copy of it, with the same
// body and trailer, and must not keep it. The client's own stays as it is. An error is fill's.
func Of(told *http.Request, fill func(*http.Request) error) (*Request, error) {
	sealed := told.Clone(told.Context())
	sealed.Trailer = told.Trailer // the server fills it in when the body has ended
	if err := fill(sealed); err != nil {
		return nil, err
	}
	return &Request{told, sealed}, nil
}

// Send sends it. The answer is one to the client's own request, with the context of the one
// that was sent. The text of an error says nothing; its cause is for errors.Is and errors.As.
func (r *Request) Send(by http.RoundTripper) (*http.Response, error) {
	answer, err := by.RoundTrip(r.sealed)
	if err != nil {
		return nil, &unanswered{err}
	}
	answer.Request = r.told.WithContext(r.sealed.Context())
	return answer, nil
}

// hidden is what is shown of every request that leaves.
const hidden = "[request with secrets]"

// String implements fmt.Stringer.
func (*Request) String() string { return hidden }

// GoString implements fmt.GoStringer.
func (*Request) GoString() string { return hidden }

// MarshalText implements encoding.TextMarshaler.
func (*Request) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue implements slog.LogValuer.
func (*Request) LogValue() slog.Value { return slog.StringValue(hidden) }

// unanswered is why a request has no answer, without the transport's words: they may have
// some of the request in them.
type unanswered struct{ cause error }

// Error implements error.
func (*unanswered) Error() string { return "the host did not answer the request" }

// Unwrap gives the cause.
func (u *unanswered) Unwrap() error { return u.cause }
