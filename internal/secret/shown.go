package secret

import (
	"context"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// shownKey is of the value of a context that keeps what sources show.
type shownKey struct{}

// shown are the secrets that a fetch has shown somebody to get the one that it is for: a client's
// secret, a vault's token. It is safe for concurrent use.
type shown struct {
	mu  sync.Mutex // guards all
	all []Value
}

// keepShown is a context that keeps what is fetched by FetchToShow below it.
func keepShown(ctx context.Context) (context.Context, *shown) {
	s := &shown{}
	return context.WithValue(ctx, shownKey{}, s), s
}

// values are all that were fetched.
func (s *shown) values() []Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// FetchToShow fetches a secret that a source shows somebody, to get from them the one that is its own.
// Who was shown it may say it in any answer, as it may say the other, so the broker looks for both. No
// source fetches from another in a different way: package archtest sees to it.
func FetchToShow(ctx context.Context, from Source) (Value, error) {
	v, err := from.Fetch(ctx)
	if err != nil {
		return Value{}, err
	}
	v.own = true
	if s, kept := ctx.Value(shownKey{}).(*shown); kept {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, v)
	}
	return v, nil
}

// fetch asks the source. Its cause stays with the operator; the sentence has nothing of
// the secret. own are the secrets that were shown for it, also if it failed.
func (d Declared) fetch(ctx context.Context) (v Value, own []Value, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	ctx, s := keepShown(ctx)
	v, err = d.Source.Fetch(ctx)
	if err != nil {
		return Value{}, s.values(), fault.Wrap(fault.ErrUnavailable, err, "the secret %q can't be had: %s", d.Name, fault.Sentence(err, "its source does not answer"))
	}
	return v, s.values(), nil
}
