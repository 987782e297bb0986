package telemetry

import (
	"context"
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// categoryOf is an error as a label.
func categoryOf(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, fault.ErrInvalid):
		return "invalid"
	case errors.Is(err, fault.ErrNotFound):
		return "not_found"
	case errors.Is(err, fault.ErrConflict):
		return "conflict"
	case errors.Is(err, fault.ErrForbidden):
		return "forbidden"
	case errors.Is(err, fault.ErrExhausted):
		return "exhausted"
	case errors.Is(err, fault.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "given_up"
	default:
		return "internal"
	}
}
