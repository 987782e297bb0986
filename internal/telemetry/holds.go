package telemetry

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/approval"
)

// watchedQueue is an approval queue whose waits are counted and traced.
type watchedQueue struct {
	admission.Approvals
	t *Telemetry
}

// Approvals counts and traces the waits for a person. A wait's span is a child of
// the call's that waits.
func (t *Telemetry) Approvals(queue admission.Approvals) admission.Approvals {
	return watchedQueue{queue, t}
}

// Await implements admission.Approvals.
func (q watchedQueue) Await(ctx context.Context, id string) (approval.Request, error) {
	began := time.Now()
	q.t.metrics.holding.Inc()
	defer q.t.metrics.holding.Dec()
	ctx, span := q.t.tracer.Start(ctx, "hold")
	span.SetAttributes(keyApproval.String(id))
	request, err := q.Approvals.Await(ctx, id)
	answer := "given_up" // the client, or its patience
	if err == nil {
		answer = string(request.State)
	}
	span.SetAttributes(keyAnswer.String(answer))
	q.t.metrics.held.WithLabelValues(answer).Observe(since(began))
	span.End()
	return request, err
}
