package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
)

// Clock tells the time, and takes a person's word for it.
type Clock interface {
	Time() clock.Reading
	// AcceptClock believes the host's clock from now on; before is how it stood.
	AcceptClock(ctx context.Context, by string) (before clock.Reading, err error)
}

func (s *Server) serveClock(w http.ResponseWriter, r *http.Request) error {
	if _, err := callerOf(r.Context()); err != nil {
		return err
	}
	if s.cfg.Clock == nil {
		return errNotWired
	}
	return writeJSON(w, r, http.StatusOK, viewClock(s.cfg.Clock.Time()))
}

func (s *Server) acceptClock(w http.ResponseWriter, r *http.Request) error {
	who, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	if s.cfg.Clock == nil {
		return errNotWired
	}
	before, err := s.cfg.Clock.AcceptClock(r.Context(), who.name)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, viewClock(before))
}

func viewClock(r clock.Reading) api.Clock {
	return api.Clock{Time: r.Now.UTC(), Host: r.Wall.UTC(), AheadSeconds: int64(r.Jump() / time.Second), Jumped: r.Jumped()}
}
