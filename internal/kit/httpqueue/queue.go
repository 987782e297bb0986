// Package httpqueue counts the requests over HTTP/2 that a server keeps until a handler takes them.
//
// A client may have so many requests under way, but it can take each back at once and make another.
// The handler of the first is not done then, so net/http keeps the head of the next, up to four
// times as many as may be under way, and no handler that would count what they take is told of
// them. A Conn looks at the frames of both sides, and a Queue takes what waits out of an Account.
// A client that takes nothing back never has one there.
package httpqueue

import (
	"errors"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

// ErrFull is that there is no room for the head of one more request that waits.
var ErrFull = errors.New("there is no room for the requests that wait on a connection")

// HeadCost is what a head takes that waits, in bytes: of at most httphead.Most as HTTP/2 counts
// them, with 32 for each field.
const HeadCost = 4 * httphead.Most

// quiet is for how long nothing may have gone on before it is sure that nothing waits: a server
// starts or drops what does as soon as a handler is done.
const quiet = time.Second

// Queue is what waits on one connection. It counts too many rather than too few: a request that
// the client takes back while it waits is dropped, and nobody is told of that; so it counts until
// the connection has been quiet for a moment, or has ended. Safe for concurrent use.
type Queue struct {
	account httphead.Account
	atOnce  int // handlers

	mu       sync.Mutex // guards all below
	open     map[uint32]struct{}
	begun    int
	handled  int
	done     int
	refused  int // by the server, at once
	answered int // by the server, with a handler or without
	charged  int // heads
	over     bool
	changed  time.Time
}

// New makes the queue of a connection whose server runs so many handlers at once.
func New(account httphead.Account, atOnce int) *Queue {
	return &Queue{account: account, atOnce: atOnce, open: map[uint32]struct{}{}}
}

// beginRequest takes that the client begins a request. The error is ErrFull.
func (q *Queue) beginRequest(stream uint32) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.handled == q.done && len(q.open) == 0 && time.Since(q.changed) >= quiet {
		q.begun, q.handled, q.done, q.refused, q.answered = 0, 0, 0, 0, 0
	}
	q.open[stream] = struct{}{}
	q.begun++
	return q.settleChanges()
}

// takeBack takes that the client wants no answer any more.
func (q *Queue) takeBack(stream uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, stream)
	q.changed = time.Now()
}

// beginAnswer takes that the server begins an answer.
func (q *Queue) beginAnswer(stream uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, isOpen := q.open[stream]; isOpen {
		delete(q.open, stream)
		q.answered++
		_ = q.settleChanges() // none more than before
	}
}

// refuseRequest takes that the server ends a request without an answer: before anybody kept it, or, if it is
// not unkept, whenever the client broke the rules. It may be one that waits then, whose head is kept
// like that of one that was taken back.
func (q *Queue) refuseRequest(stream uint32, unkept bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, isOpen := q.open[stream]; !isOpen {
		return
	}
	delete(q.open, stream)
	if unkept {
		q.refused++
	}
	_ = q.settleChanges() // none more than before
}

// Handle takes that a handler has a request. It counts from now on what that takes.
func (q *Queue) Handle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.handled++
	q.changed = time.Now()
}

// Done takes that a handler has returned.
func (q *Queue) Done() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done++
	_ = q.settleChanges() // one less
}

// End gives all back: the connection has ended.
func (q *Queue) End() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	_ = q.settleChanges() // gives back alone
}

// settleChanges takes or gives back what has changed. It needs mu. A request that the server has answered
// without a handler is among those that were answered; where fewer were answered than handled, none
// is known to be one.
func (q *Queue) settleChanges() error {
	q.changed = time.Now()
	waiting := max(0, q.begun-q.done-q.refused-max(0, q.answered-q.handled)-q.atOnce)
	if q.over {
		waiting = 0
	}
	switch more := waiting - q.charged; {
	case more > 0 && !q.account.Take(int64(more)*HeadCost):
		return ErrFull
	case more < 0:
		q.account.Give(int64(-more) * HeadCost)
	}
	q.charged = waiting
	return nil
}
