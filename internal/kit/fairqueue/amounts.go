package fairqueue

import (
	"context"
	"slices"
	"sync"
)

// AmountLimits are Limits of what is given out in amounts, such as bytes.
type AmountLimits struct {
	All  int64 // at a time
	Each int64 // that one guest may have of these
	// Sure are those that each guest may have, whatever the others have; Most is the end even of
	// these. 0: none is sure.
	Sure, Most int64
}

// Amounts give out amounts: each guest waits behind what it has asked for before, and nobody behind
// another guest that has its share. One that waits for much is not passed by those who want little
// of what is for all. Safe for concurrent use.
type Amounts struct {
	limits AmountLimits

	mu      sync.Mutex // guards what follows
	all     int64
	had     map[string]int64 // by guest
	waiting []*amount        // in the order in which they came
}

type amount struct {
	guest string
	n     int64
	given chan struct{}
}

// NewAmounts makes some.
func NewAmounts(l AmountLimits) *Amounts { return &Amounts{limits: l, had: map[string]int64{}} }

// Take waits for an amount for the one guest that ctx is for. An amount above what a guest may have
// takes all of that. The caller gives it back by release, once; the error is ctx's.
func (a *Amounts) Take(ctx context.Context, n int64) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &amount{guest: newWaiter(ctx).guests()[0], n: min(n, max(a.limits.Each, a.limits.Sure)), given: make(chan struct{})}
	a.mu.Lock()
	a.waiting = append(a.waiting, w)
	a.giveAmounts()
	a.mu.Unlock()
	select {
	case <-w.given:
		return sync.OnceFunc(func() { a.releaseAmount(w) }), nil
	case <-ctx.Done():
	}
	a.mu.Lock()
	at := slices.Index(a.waiting, w)
	if at >= 0 {
		a.waiting = slices.Delete(a.waiting, at, at+1)
		a.giveAmounts() // who stood behind it may go on
	}
	a.mu.Unlock()
	if at < 0 {
		a.releaseAmount(w)
	}
	return nil, ctx.Err()
}

func (a *Amounts) releaseAmount(w *amount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all -= w.n
	if a.had[w.guest] -= w.n; a.had[w.guest] == 0 {
		delete(a.had, w.guest)
	}
	a.giveAmounts()
}

// giveAmounts gives to all who may have what they wait for. Needs mu.
func (a *Amounts) giveAmounts() {
	behind := map[string]bool{} // guests of whom somebody waits who came before
	crowded := false            // somebody waits for what is for all
	a.waiting = slices.DeleteFunc(a.waiting, func(w *amount) bool {
		l, had := a.limits, a.had[w.guest]+w.n
		sure := had <= l.Sure && a.all+w.n <= l.Most
		shared := had <= l.Each && a.all+w.n <= l.All && !crowded
		if behind[w.guest] || !sure && !shared {
			crowded = crowded || !behind[w.guest] && had <= l.Each
			behind[w.guest] = true
			return false
		}
		a.all += w.n
		a.had[w.guest] = had
		close(w.given)
		return true
	})
}
