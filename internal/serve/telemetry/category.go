package telemetry

import (
	"context"
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// categoryOf is an error as a label.
func categoryOf(err error) string {
	kind := fault.KindOf(err)
	switch {
	case err == nil:
		return "ok"
	case kind.Category != nil && errors.Is(err, kind.Category):
		return kind.Name
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "given_up"
	}
	return kind.Name
}
