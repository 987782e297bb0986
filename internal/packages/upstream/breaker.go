package upstream

import (
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxFailing bounds the guests whose failures are remembered; the one whose last
// is the oldest is forgotten.
const maxFailing = 4096

// breaker leaves one host of an upstream alone for a while after it could not be
// reached, so that a thousand clients don't wait for a thousand timeouts. What
// an upstream says of one name is no reason to keep the others from it, so it
// stops a guest that could not connect several times in a row, and, when several
// guests have got no answer to anything, each of these. A guest that had no failure since anybody was answered is let through.
type breaker struct {
	after int
	pause time.Duration

	mu     sync.Mutex
	guests map[string]*failing // since the last answer
}

// breakers are those of a client's hosts: the index's and the learnt ones.
type breakers struct {
	after int
	pause time.Duration

	mu     sync.Mutex
	byHost map[string]*breaker
}

func (bs *breakers) breakerOf(host string) *breaker {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.byHost[host]
	if b == nil {
		b = &breaker{after: bs.after, pause: bs.pause}
		bs.byHost[host] = b
	}
	return b
}

// failing is what one guest met since the last answer.
type failing struct {
	unreached int // requests in a row that did not even connect
	last      time.Time
	until     time.Time // it is refused before; zero: never refused
}

// allowGuests refuses if everybody for whom a request is made is left waiting. After
// the pause each of them may try one request.
func (b *breaker) allowGuests(guests ...string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.ContainsFunc(guests, b.claimTry) {
		return nil
	}
	return fault.New(fault.ErrUnavailable, "the upstream could not be reached several times in a row and is left alone for a moment")
}

// claimTry tells whether a guest may try now. A guest without an answer may do so once in a pause:
// the try is taken with it. Needs mu.
func (b *breaker) claimTry(guest string) bool {
	f := b.guests[guest]
	if f == nil || f.unreached < b.after && len(b.guests) < b.after {
		return true
	}
	now := time.Now()
	if now.Before(f.until) {
		return false
	}
	f.until = now.Add(b.pause)
	return true
}

// noteAnswered: the host answers, whatever it says.
func (b *breaker) noteAnswered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.guests)
}

// noteFailed: a guest's request had no answer. connected tells that it reached the
// host all the same.
func (b *breaker) noteFailed(guest string, connected bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.guests[guest]
	if f == nil {
		if len(b.guests) >= maxFailing {
			b.forgetOldest()
		}
		if b.guests == nil {
			b.guests = map[string]*failing{}
		}
		f = &failing{}
		b.guests[guest] = f
	}
	f.last = time.Now()
	f.until = f.last.Add(b.pause)
	if !connected {
		f.unreached++
	}
}

func (b *breaker) forgetOldest() {
	var oldest string
	for guest, f := range b.guests {
		if oldest == "" || f.last.Before(b.guests[oldest].last) {
			oldest = guest
		}
	}
	delete(b.guests, oldest)
}
