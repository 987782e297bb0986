package httpapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/turns"
)

// readsLine is how many requests of one token wait for the log.
const readsLine = 256

// readsOfLog are how many requests read the log at a time, which is long: few of one token's, and
// however many tokens ask, one of each.
func readsOfLog() turns.Limits {
	return turns.Limits{All: 4, Each: 2, Sure: 1, Most: 64, Line: readsLine}
}

// inTurn has requests of tokens wait for their turn to read the log. The host's own users read it
// when they like: they could read its files.
func (s *desk) inTurn(read handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		by, err := callerOf(r.Context())
		if err != nil {
			return err
		}
		if by.all() {
			return read(w, r)
		}
		_, leave, err := s.logReads.Take(turns.For(r.Context(), by.token.ID))
		if errors.Is(err, turns.ErrCrowded) {
			return fault.Exhausted(time.Second, "%d requests of this token wait for the log already", readsLine)
		}
		if err != nil {
			return err
		}
		defer leave()
		return read(w, r)
	}
}
