package httphead

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
)

// accountKey is under what a request's context has its account.
type accountKey struct{}

// With has the heads of the answers to the requests of a context come out of an account. What one
// that was read takes is not given back here: the account is the request's, and ends with it.
func With(ctx context.Context, account Account) context.Context {
	return context.WithValue(ctx, accountKey{}, account)
}

// Transport sends requests and counts the heads of their answers, where a request has an account.
// Its connections over HTTP/1 have to be of the type Conn, under their TLS if they have that.
type Transport struct {
	To http.RoundTripper
}

// RoundTrip implements http.RoundTripper. The error is ErrFull if there is no room for the head.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	account, _ := r.Context().Value(accountKey{}).(Account)
	if account == nil {
		return t.To.RoundTrip(r)
	}
	var on expecting
	defer on.arrived()
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		on.expect(meterOf(got.Conn), account)
	}})
	answer, err := t.To.RoundTrip(r.WithContext(ctx))
	if err != nil {
		if on.full() {
			return nil, ErrFull
		}
		return nil, err
	}
	if !account.Take(Cost(0, answer.Header, answer.Trailer) + behind(answer)) {
		_ = answer.Body.Close() // nobody reads it
		return nil, ErrFull
	}
	if answer.ProtoMajor == 2 && answer.Body != http.NoBody {
		answer.Body = &trailed{answer.Body, answer}
	}
	return answer, nil
}

// behind is what may come behind an answer's body.
func behind(answer *http.Response) int64 {
	switch {
	case answer.Body == nil || answer.Body == http.NoBody || answer.ContentLength == 0:
		return 0
	case answer.ProtoMajor == 2:
		return framedTrailers
	case slices.Contains(answer.TransferEncoding, "chunked"):
		return plainTrailers
	}
	return 0
}

// expecting is the connection on which an answer is expected. A transport may choose another one
// if the first is gone.
type expecting struct {
	mu    sync.Mutex // guards meter
	meter *Meter     // nil: none is counted
}

func (e *expecting) expect(meter *Meter, account Account) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.meter != nil {
		e.meter.Arrived()
	}
	if e.meter = meter; meter != nil {
		meter.Expect(account, Most+Slack)
	}
}

func (e *expecting) arrived() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.meter != nil {
		e.meter.Arrived()
	}
}

func (e *expecting) full() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.meter != nil && e.meter.Full()
}
