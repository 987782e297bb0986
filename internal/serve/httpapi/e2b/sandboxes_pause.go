package e2b

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// pauseBody is the body of a pause.
type pauseBody struct {
	Memory  *bool `json:"memory"`              // false: keep the files alone
	Healthy bool  `json:"requireHealthyGuest"` // only if the sandbox's agent answers
}

// guestTimeout is how long a pause waits for an agent that must answer.
const guestTimeout = 5 * time.Second

// servePause answers 409 only for a sandbox that was on disk when it was asked for: clients
// take that for a success. A caller that asks at the same time as others pauses it with them.
func (c *Control) servePause(w http.ResponseWriter, r *keyedRequest) error {
	sb, err := c.ownSandbox(r)
	if err != nil {
		return err
	}
	var body pauseBody
	if err := readJSON(r, &body); err != nil {
		return err
	}
	pause := c.cfg.Sandboxes.Pause
	if body.Memory != nil && !*body.Memory {
		pause = c.cfg.Sandboxes.PauseFiles
	}
	id := sb.Info().ID
	if state, _ := sb.State(); state == sandbox.Paused {
		return fault.New(fault.ErrConflict, "the sandbox %s is paused already", id)
	}
	if body.Healthy {
		if err := c.answers(r.Context(), id); err != nil {
			return err
		}
	}
	if err := pause(r.Context(), id); err != nil {
		state, _ := sb.State()
		switch conflict := errors.Is(err, fault.ErrConflict); {
		case conflict && state == sandbox.Paused: // another one's pause was just done
		case conflict:
			return fault.New(fault.ErrUnavailable, "%s", errorSentence(err))
		default:
			return err
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// answers refuses what a sandbox whose agent is silent is not to do.
func (c *Control) answers(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, guestTimeout)
	defer cancel()
	if _, err := c.cfg.Sandboxes.File(ctx, id, channel.File{Op: channel.FileStat, Path: "/"}); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the agent of the sandbox %s does not answer, so that it is not paused", id)
	}
	return nil
}
