package requests

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/budget"
)

// placeKey is under what a request's context has its place.
type placeKey struct{}

// bodyPlace is what a request has of a sandbox's share of the gateway: a place among the bodies
// that are kept, taken once, by whichever of those who see to the request first reads all of its
// body; the memory of such bodies; and the memory of all else. The first two are given back when
// the host has read the body, all of it when the request has ended.
type bodyPlace struct {
	memory *budget.Budget

	mu    sync.Mutex // guards all below
	of    chan struct{}
	kept  int64 // bytes, of bodies
	own   int64 // bytes, of the rest
	ended bool  // nothing of its body is kept any more
	over  bool  // the request has ended
}

// withPlace is a request that can take a place; end gives all back.
func withPlace(r *http.Request, memory *budget.Budget) (*http.Request, *bodyPlace) {
	p := &bodyPlace{memory: memory}
	ctx := httphead.With(context.WithValue(r.Context(), placeKey{}, p), headAccount{p})
	return r.WithContext(ctx), p
}

func placeOfRequest(r *http.Request) *bodyPlace {
	p, _ := r.Context().Value(placeKey{}).(*bodyPlace)
	return p
}

// TakePlace waits for a place among the bodies that are kept, and for as many bytes of the
// sandbox's memory as keeping this one and looking through it may take, before any of it is
// read. A request that has a place gets no other. The error is that the request has ended, or
// the *Refusal that the sandbox has as much as it may. places nil: there are any number.
func TakePlace(r *http.Request, places chan struct{}, bytes int64) error {
	p := placeOfRequest(r)
	if p == nil {
		return r.Context().Err()
	}
	if places != nil && !p.hasPlace() {
		select {
		case places <- struct{}{}:
			p.takePlace(places)
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
	err := p.memory.Await(r.Context(), bytes)
	if errors.Is(err, budget.ErrFull) {
		return p.refuseFull()
	}
	if err == nil {
		p.keepBytes(bytes)
	}
	return err
}

// Return gives back what TakePlace has taken and what is not kept after all.
func Return(r *http.Request, bytes int64) {
	if p := placeOfRequest(r); p != nil {
		p.keepBytes(-bytes)
	}
}

// Charge takes bytes of the sandbox's memory until the request has ended. The error is a
// *Refusal.
func Charge(r *http.Request, bytes int64) error {
	if p := placeOfRequest(r); p != nil && !p.charge(bytes) {
		return p.refuseFull()
	}
	return nil
}

func (p *bodyPlace) refuseFull() *Refusal {
	return &Refusal{Rule: door.RuleHostMemory, Reason: p.memory.Sentence(), Status: http.StatusServiceUnavailable}
}

func (p *bodyPlace) hasPlace() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of != nil
}

func (p *bodyPlace) takePlace(places chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		<-places
		return
	}
	p.of = places
}

// keepBytes has bytes more, which are taken, or less kept.
func (p *bodyPlace) keepBytes(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		p.memory.Give(max(bytes, 0)) // of what is less all was given back
		return
	}
	p.kept += bytes
	if bytes < 0 {
		p.memory.Give(-bytes)
	}
}

// charge takes bytes for the rest.
func (p *bodyPlace) charge(bytes int64) bool {
	if !p.memory.Take(bytes) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		p.memory.Give(bytes)
		return true
	}
	p.own += bytes
	return true
}

// headAccount has the heads of a request's answers come out of the rest.
type headAccount struct{ of *bodyPlace }

// Take implements httphead.Account.
func (a headAccount) Take(bytes int64) bool { return a.of.charge(bytes) }

// Give implements httphead.Account.
func (a headAccount) Give(bytes int64) {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if !a.of.over { // else all was given back
		a.of.own -= bytes
		a.of.memory.Give(bytes)
	}
}

// freePlace gives the place back, and what is kept of the body; the request can take none any more.
func (p *bodyPlace) freePlace() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended = true; p.of != nil {
		<-p.of
		p.of = nil
	}
	p.memory.Give(p.kept)
	p.kept = 0
}

// endPlace gives all back.
func (p *bodyPlace) endPlace() {
	p.freePlace()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.memory.Give(p.own)
	p.own = 0
}

// requestCost is what one request takes while it is under way, in bytes, beside its head: its
// goroutines with their stacks and buffers.
const requestCost = 32 << 10

// costOf is what a request takes whose header was read.
func costOf(r *http.Request) int64 {
	cost := requestCost + httphead.Cost(len(r.RequestURI)+len(r.Host), r.Header)
	if r.ProtoMajor == 2 && r.Body != nil && r.Body != http.NoBody {
		cost += maxBodyKept
	}
	return cost
}

// charged is a connection to the host with what may wait on it.
type charged struct {
	net.Conn
	memory *budget.Budget
	bytes  atomic.Int64
}

// Close implements net.Conn.
func (c *charged) Close() error {
	c.memory.Give(c.bytes.Swap(0))
	return c.Conn.Close()
}

// chargeAnswers takes what of answers may wait for the client on a connection over HTTP/2, on
// which the host sends it ahead.
func (c *charged) chargeAnswers() error {
	if !c.memory.Take(maxAnswersKept) {
		return &Refusal{Rule: door.RuleHostMemory, Reason: c.memory.Sentence(), Status: http.StatusServiceUnavailable}
	}
	c.bytes.Add(maxAnswersKept)
	return nil
}

// leaving is a body on its way to the host. It gives its place back when it has been read.
type leaving struct {
	io.ReadCloser
	place *bodyPlace
}

// Read implements io.Reader.
func (l *leaving) Read(b []byte) (n int, err error) {
	if n, err = l.ReadCloser.Read(b); err != nil {
		l.place.freePlace()
	}
	return n, err
}

// Close implements io.Closer.
func (l *leaving) Close() error {
	defer l.place.freePlace()
	return l.ReadCloser.Close()
}

// releaseWithBody has a request's body give the place back once the host has read it. The transport reads
// it in a goroutine of its own, where a panic would end the gateway: that is shielded.
func releaseWithBody(r *http.Request) {
	p := placeOfRequest(r)
	switch {
	case p == nil:
	case r.Body == nil || r.Body == http.NoBody:
		p.freePlace()
	default:
		r.Body = &leaving{safego.ShieldBody(r.Body), p}
	}
}
