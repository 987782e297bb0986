package watched

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

// queue is an approval queue whose waits are counted and traced.
type queue struct {
	admission.Approvals
	tel *telemetry.Telemetry
}

// Queue counts and traces the waits for a person.
func Queue(q admission.Approvals, tel *telemetry.Telemetry) admission.Approvals {
	return queue{q, tel}
}

// Await implements admission.Approvals.
func (q queue) Await(ctx context.Context, id string) (approval.Request, error) {
	ctx, answered := q.tel.Holding(ctx, id)
	request, err := q.Approvals.Await(ctx, id)
	answer := "given_up" // the client, or its patience
	if err == nil {
		answer = string(request.State)
	}
	answered(answer)
	return request, err
}
