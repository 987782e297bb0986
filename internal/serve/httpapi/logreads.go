package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// readsLine is how many requests of one token wait for the log.
const readsLine = 256

// readsOfLog are how many requests read the log at a time, which is long: few of one token's, and
// however many tokens ask, one of each.
func readsOfLog() fairqueue.Limits {
	return fairqueue.Limits{All: 4, Each: 2, Sure: 1, Most: 64, Line: readsLine}
}

// turnKey marks the context of a request that has its turn to read the log.
type turnKey struct{}

// inTurn has requests of tokens wait for their turn to read the log. The host's own users read it
// when they like: they could read its files.
func (s *desk) inTurn(read routeHandler) routeHandler {
	return func(w http.ResponseWriter, r *http.Request) error {
		by, err := callerOf(r.Context())
		if err != nil {
			return err
		}
		if by.seesAll() {
			return read(w, r)
		}
		ctx, leave, err := s.turnToRead(r.Context(), by.token.ID)
		if err != nil {
			return err
		}
		defer leave()
		return read(w, r.WithContext(ctx))
	}
}

// turnToRead waits for a token's turn to read the log, and gives the context that has it. Of who has one already it is
// the same turn: two of a token's requests that had all of its turns would wait for a second one for ever.
func (s *desk) turnToRead(ctx context.Context, token string) (reading context.Context, leave func(), err error) {
	if ctx.Value(turnKey{}) != nil {
		return ctx, func() {}, nil
	}
	_, leave, err = s.logReads.Take(fairqueue.For(ctx, token))
	if errors.Is(err, fairqueue.ErrCrowded) {
		return nil, nil, fault.Exhausted(time.Second, "%d requests of this token wait for the log already", readsLine)
	}
	if err != nil {
		return nil, nil, err
	}
	return context.WithValue(ctx, turnKey{}, true), leave, nil
}
