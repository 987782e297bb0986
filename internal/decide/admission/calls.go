package admission

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// caller is a sandbox as one that calls tools.
type caller struct{ t *tenant }

// endCalls ends the calls of a sandbox that ends. A tool that does not end within a moment
// is on record behind the sandbox.
func (c caller) endCalls(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	c.t.calls.stopCalls(within)
}

// replayRecord takes a record of a tool from the log.
func (c caller) replayRecord(r audit.Record) {
	t := c.t
	switch r.Outcome { //nolint:exhaustive // a tool's records have no other
	case audit.Started:
		if t.calls.lost == nil {
			t.calls.lost = map[uint64]audit.Record{}
		}
		t.calls.lost[r.Seq] = r
		t.calls.made++
		t.book.Answered(r.Approval)
	case audit.Finished, audit.Failed:
		if seq, err := strconv.ParseUint(r.Detail[records.DetailBegan], 10, 64); err == nil {
			delete(t.calls.lost, seq)
		}
	case audit.Blocked, audit.Exceeded, audit.Pending:
		if r.Outcome != audit.Pending {
			t.book.Answered(r.Approval)
		}
		t.book.ReplayRefusal(r)
	}
}

// endLost puts on record that calls ended with the daemon that had made them. Nobody
// else knows the tenant yet.
func (c caller) endLost(ctx context.Context) error {
	t := c.t
	var errs []error
	for _, seq := range slices.Sorted(maps.Keys(t.calls.lost)) {
		began := t.calls.lost[seq]
		_, err := t.book.Append(ctx, audit.Record{
			Kind: audit.KindTool, Outcome: audit.Failed, User: began.User, RequestID: began.RequestID, Rule: began.Rule,
			Reason: "the daemon that made the call ended before the tool had answered",
			Detail: map[string]string{records.DetailTool: began.Detail[records.DetailTool], records.DetailBegan: strconv.FormatUint(seq, 10)},
		})
		errs = append(errs, err)
	}
	t.calls.lost = nil
	return errors.Join(errs...)
}
