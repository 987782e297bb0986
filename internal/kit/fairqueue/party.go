// Package fairqueue divides what is scarce between guests, so that none of them can
// use it up for the others.
//
// A guest is whoever something is done for, by its id: a sandbox of the gateway's, an owner of
// sandboxes of the daemon's; "" is this program itself, or its own user. A guest may ask for a
// member of its own, such as a sandbox of an owner; "" is the guest as such.
package fairqueue

import (
	"context"
	"slices"
	"sync"
)

// Party are the guests for whom one thing is done. It may grow while that goes on. The zero value has nobody.
type Party struct {
	mu     sync.Mutex // taken after that of a party whose inner this is
	guests []string
	inner  []*Party      // what is done in turn for this: they have all of its guests
	grew   chan struct{} // closed and replaced when a guest joins; nil: nobody looks
}

// Join adds those whom ctx is for, and everybody who joins their party later.
func (p *Party) Join(ctx context.Context) {
	switch who := ctx.Value(partyKey{}).(type) {
	case string:
		p.addGuest(who)
	case one:
		p.addGuest(who.guest)
	case *Party:
		if who == p {
			return
		}
		who.mu.Lock()
		defer who.mu.Unlock()
		if !slices.Contains(who.inner, p) {
			who.inner = append(who.inner, p)
		}
		for _, guest := range who.guests {
			p.addGuest(guest)
		}
	}
}

func (p *Party) addGuest(guest string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(p.guests, guest) {
		return
	}
	p.guests = append(p.guests, guest)
	for _, inner := range p.inner {
		inner.addGuest(guest)
	}
	if p.grew != nil {
		close(p.grew)
		p.grew = nil
	}
}

// Guests are those who have joined; the program itself if nobody has.
func (p *Party) Guests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.guests) == 0 {
		return []string{""}
	}
	return slices.Clone(p.guests)
}

// growth is closed when another guest joins.
func (p *Party) growth() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.grew == nil {
		p.grew = make(chan struct{})
	}
	return p.grew
}

type partyKey struct{}

// For makes a context of what is done for one guest.
func For(ctx context.Context, guest string) context.Context {
	return context.WithValue(ctx, partyKey{}, guest)
}

// Within makes a context of what is done for one member of a guest.
func Within(ctx context.Context, guest, member string) context.Context {
	return context.WithValue(ctx, partyKey{}, one{guest, member})
}

// one is a member of a guest.
type one struct{ guest, member string }

// With makes a context of what is done for a party.
func With(ctx context.Context, p *Party) context.Context {
	return context.WithValue(ctx, partyKey{}, p)
}

// Of is the party that ctx is for.
func Of(ctx context.Context) *Party {
	if p, ok := ctx.Value(partyKey{}).(*Party); ok {
		return p
	}
	p := &Party{}
	p.Join(ctx)
	return p
}
