package requests

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
)

// placeKey is under what a request's context has its place.
type placeKey struct{}

// place is a request's among the bodies of a sandbox that are kept in memory. It is taken once,
// by whichever of those who see to the request first reads all of its body, and given back when
// the host has read that, or the request has ended.
type place struct {
	mu    sync.Mutex // guards both
	of    chan struct{}
	ended bool
}

// withPlace is a request that can take a place; end gives it back.
func withPlace(r *http.Request) (*http.Request, *place) {
	p := &place{}
	return r.WithContext(context.WithValue(r.Context(), placeKey{}, p)), p
}

// TakePlace waits for a place among the bodies that are kept, before a request's is read: until
// then none of it is in memory. A request that has one gets no other. The error is that the
// request has ended. places nil: there are any number.
func TakePlace(r *http.Request, places chan struct{}) error {
	p, _ := r.Context().Value(placeKey{}).(*place)
	if places == nil || p == nil || p.has() {
		return r.Context().Err()
	}
	select {
	case places <- struct{}{}:
		p.take(places)
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

func (p *place) has() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of != nil
}

func (p *place) take(places chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		<-places
		return
	}
	p.of = places
}

// free gives the place back; the request can take none any more.
func (p *place) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended = true; p.of != nil {
		<-p.of
		p.of = nil
	}
}

// leaving is a body on its way to the host. It gives its place back when it has been read.
type leaving struct {
	io.ReadCloser
	place *place
}

// Read implements io.Reader.
func (l *leaving) Read(b []byte) (n int, err error) {
	if n, err = l.ReadCloser.Read(b); err != nil {
		l.place.free()
	}
	return n, err
}

// Close implements io.Closer.
func (l *leaving) Close() error {
	defer l.place.free()
	return l.ReadCloser.Close()
}

// leave has a request's body give the place back once the host has read it. The transport reads
// it in a goroutine of its own, where a panic would end the gateway: that is shielded.
func leave(r *http.Request) {
	p, _ := r.Context().Value(placeKey{}).(*place)
	switch {
	case p == nil:
	case r.Body == nil || r.Body == http.NoBody:
		p.free()
	default:
		r.Body = &leaving{errand.ShieldBody(r.Body), p}
	}
}
