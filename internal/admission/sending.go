package admission

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Keys of Record.Detail, of files that are sent.
const (
	detailPart = "part"       // of the file that the answer has, if it is not all of it
	detailSent = "sent_bytes" // of an aborted file: what left the gateway, or "unknown"
)

// unknownBytes went to a client when the gateway that would know has gone.
const unknownBytes = -1

// Sent implements Door.
func (c *Controller) Sent(_ context.Context, sandbox string, seq uint64) error {
	t, err := c.tenant(sandbox)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.served[seq]
	if f == nil || !f.sending {
		return errNotSending(seq)
	}
	f.sending = false
	return nil
}

func errNotSending(seq uint64) error {
	return fault.New(fault.ErrNotFound, "record %d is no file that was served to this sandbox and is still under way", seq)
}

// Aborted implements Door.
func (c *Controller) Aborted(ctx context.Context, sandbox string, seq uint64, sent int64) error {
	t, err := c.tenant(sandbox)
	if err != nil {
		return err
	}
	return c.abort(ctx, t, seq, sent, "")
}

// abort puts on record that a file did not reach its client whole.
func (c *Controller) abort(ctx context.Context, t *tenant, seq uint64, sent int64, reason string) error {
	t.mu.Lock()
	f := t.served[seq]
	if f == nil || !f.sending {
		t.mu.Unlock()
		return errNotSending(seq)
	}
	f.sending, f.aborted = false, true
	t.mu.Unlock()
	r := f.record
	r.Outcome, r.Reason = audit.Aborted, reason
	r.Detail = maps.Clone(r.Detail)
	if r.Detail == nil {
		r.Detail = map[string]string{}
	}
	r.Detail[detailServed], r.Detail[detailSent] = strconv.FormatUint(seq, 10), "unknown"
	if sent != unknownBytes {
		r.Detail[detailSent] = strconv.FormatInt(sent, 10)
	}
	if _, err := c.record(ctx, t, r); err != nil {
		t.mu.Lock()
		f.sending, f.aborted = true, false
		t.mu.Unlock()
		return err
	}
	return nil
}

// GatewayEnded puts on record which files the gateway was sending when it went,
// whatever their clients have of them.
func (c *Controller) GatewayEnded(ctx context.Context) error {
	c.mu.RLock()
	tenants := slices.Collect(maps.Values(c.tenants))
	c.mu.RUnlock()
	var errs []error
	for _, t := range tenants {
		errs = append(errs, c.abortAll(ctx, t, "the gateway ended while it was sent"))
	}
	return errors.Join(errs...)
}

// abortAll ends what is being sent to a sandbox.
func (c *Controller) abortAll(ctx context.Context, t *tenant, reason string) error {
	t.mu.Lock()
	var open []uint64
	for seq, f := range t.served {
		if f.sending {
			open = append(open, seq)
		}
	}
	t.mu.Unlock()
	slices.Sort(open)
	var errs []error
	for _, seq := range open {
		if err := c.abort(ctx, t, seq, unknownBytes, reason); err != nil && !errors.Is(err, fault.ErrNotFound) { // it has ended meanwhile
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
