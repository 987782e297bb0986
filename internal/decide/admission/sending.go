package admission

import (
	"context"
	"errors"
	"maps"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Keys of Record.Detail, of files that are sent.
const (
	detailPart = "part"       // of the file that the answer has, if it is not all of it
	detailSent = "sent_bytes" // of an aborted file: what left the gateway, or "unknown"
)

// detailTook is of what takes a while: a freeze, a connection.
const detailTook = "took_ms"

// unknownBytes went to a client when the gateway that would know has gone.
const unknownBytes = -1

// Sent implements Door.
func (c *Controller) Sent(_ context.Context, sandbox string, seq uint64) error {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	return t.served.Sent(seq)
}

// Aborted implements Door.
func (c *Controller) Aborted(ctx context.Context, sandbox string, seq uint64, sent int64) error {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	return t.recordAbort(ctx, seq, sent, "")
}

// recordAbort puts on record that a file did not reach its client whole.
func (t *tenant) recordAbort(ctx context.Context, seq uint64, sent int64, reason string) error {
	r, err := t.served.Abort(seq)
	if err != nil {
		return err
	}
	r.Outcome, r.Reason = audit.Aborted, reason
	r.Detail = maps.Clone(r.Detail)
	if r.Detail == nil {
		r.Detail = map[string]string{}
	}
	r.Detail[records.DetailServed], r.Detail[detailSent] = strconv.FormatUint(seq, 10), "unknown"
	if sent != unknownBytes {
		r.Detail[detailSent] = strconv.FormatInt(sent, 10)
	}
	_, err = t.book.Append(ctx, r)
	if !records.Kept(err) {
		t.served.Resume(seq)
	}
	return err
}

// abortAll ends what is being sent to a sandbox.
func (t *tenant) abortAll(ctx context.Context, reason string) error {
	var errs []error
	for _, seq := range t.served.Sending() {
		if err := t.recordAbort(ctx, seq, unknownBytes, reason); err != nil && !errors.Is(err, fault.ErrNotFound) { // it has ended meanwhile
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// GatewayEnded puts on record which files the gateway was sending when it went,
// whatever their clients have of them, and which connections ended with it.
func (c *Controller) GatewayEnded(ctx context.Context) error {
	var errs []error
	for _, t := range c.tenants.listTenants() {
		errs = append(errs, t.abortAll(ctx, "the gateway ended while it was sent"), t.endConnections(ctx, "the gateway ended"))
	}
	return errors.Join(errs...)
}
