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

// With has the heads of the answers to the requests of a context come out of an account. Memory of a
// head that was read is not given back here: the account is the request's, and ends with it.
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
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		on.expect(meterOf(got.Conn), account)
	}})
	answer, err := t.To.RoundTrip(r.WithContext(ctx))
	full := on.arrived()
	switch {
	case err != nil && full:
		return nil, ErrFull
	case err != nil:
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
	mu    sync.Mutex // guards all below
	meter *Meter     // nil: none is counted
	turn  uint64
	over  bool // the request is over, and expects nothing
}

func (e *expecting) expect(meter *Meter, account Account) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.endExpecting()
	if e.over || meter == nil {
		return
	}
	e.meter, e.turn = meter, meter.Expect(account, Most+Slack)
}

// arrived tells whether there was no room for the head.
func (e *expecting) arrived() (full bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	return e.endExpecting()
}

// endExpecting needs mu.
func (e *expecting) endExpecting() (full bool) {
	if e.meter != nil {
		full = e.meter.ArrivedAt(e.turn)
	}
	e.meter = nil
	return full
}
