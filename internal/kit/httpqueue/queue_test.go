package httpqueue

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// room is an account of so many heads.
type room struct{ left int64 }

func (r *room) Take(bytes int64) bool {
	if r.left < bytes {
		return false
	}
	r.left -= bytes
	return true
}

func (r *room) Give(bytes int64) { r.left += bytes }

const many = 10

// begun makes a queue of three handlers with an account of many heads.
func begun(t *testing.T) (*Queue, *room, func() error) {
	t.Helper()
	account := &room{left: many * HeadCost}
	q, stream := New(account, 3), uint32(0)
	return q, account, func() error {
		stream++
		return q.beginRequest(stream)
	}
}

func (r *room) waiting() int { return many - int(r.left/HeadCost) }

// TestOnlyWaitingRequestsAreCharged: as many as there are handlers cost nothing here; those beyond do
// until one is done, and all is given back at the end.
func TestOnlyWaitingRequestsAreCharged(t *testing.T) {
	q, account, begin := begun(t)
	for range 3 {
		if err := begin(); err != nil {
			t.Fatal(err)
		}
		q.Handle()
	}
	if account.waiting() != 0 {
		t.Errorf("%d heads are charged of requests that have handlers", account.waiting())
	}
	for i := range many {
		if err := begin(); err != nil || account.waiting() != i+1 {
			t.Fatalf("after %d more: %v, %d charged", i+1, err, account.waiting())
		}
	}
	if err := begin(); !errors.Is(err, ErrFull) {
		t.Errorf("one beyond the room: %v", err)
	}
	q.Done()
	q.Done()
	if account.waiting() != many-1 { // one that was refused counts until the connection ends
		t.Errorf("%d are charged after two were done", account.waiting())
	}
	q.End()
	q.Done()
	if account.waiting() != 0 {
		t.Errorf("%d are charged at the end", account.waiting())
	}
}

// TestRequestsThatTheServerAnswersByItself cost nothing however many there are, beside one that
// has a handler for long.
func TestRequestsThatTheServerAnswersByItself(t *testing.T) {
	q, account, begin := begun(t)
	_ = begin()
	q.Handle()
	for i := range uint32(1000) {
		if err := begin(); err != nil {
			t.Fatalf("the %dth: %v", i, err)
		}
		q.beginAnswer(i + 2)
	}
	if account.waiting() != 0 {
		t.Errorf("%d are charged", account.waiting())
	}
}

// TestWhatIsDroppedIsForgotten: nobody is told of a request that was taken back while it waited.
// When nothing has gone on for a moment none waits; before, it may.
func TestWhatIsDroppedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, account, begin := begun(t)
		for i := range uint32(8) {
			_ = begin()
			q.takeBack(i + 1)
		}
		for range 3 {
			q.Handle()
			q.Done()
		}
		if err := begin(); err != nil || account.waiting() != 3 {
			t.Errorf("at once: %v, %d charged, not 3", err, account.waiting())
		}
		q.beginAnswer(9)
		time.Sleep(quiet)
		if err := begin(); err != nil || account.waiting() != 0 {
			t.Errorf("after a moment: %v, %d charged", err, account.waiting())
		}
	})
}

// TestWhatTheServerResetsIsKept: a client breaks the rules on the stream of a request that waits, so
// that the server resets it in the client's place. Its head is kept until its turn comes. One that the
// server refuses at once was never kept.
func TestWhatTheServerResetsIsKept(t *testing.T) {
	q, account, begin := begun(t)
	conn := &Conn{Queue: q}
	for i := range uint32(3 + 5) {
		if err := begin(); err != nil {
			t.Fatal(err)
		}
		if i < 3 {
			q.Handle()
		}
		conn.hearFrame(countedFrame{kind: typeReset, stream: i + 1, code: protocolError})
	}
	if account.waiting() != 5 {
		t.Errorf("%d heads are charged of 5 that wait", account.waiting())
	}
	for i := range uint32(1000) {
		if err := begin(); err != nil {
			t.Fatalf("the %dth that is refused: %v", i, err)
		}
		conn.hearFrame(countedFrame{kind: typeReset, stream: i + 9, code: refusedStream})
	}
	if account.waiting() != 5 {
		t.Errorf("%d are charged when others were refused", account.waiting())
	}
}
