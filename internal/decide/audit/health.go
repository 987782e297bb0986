package audit

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Healthy says whether a record could be written now, without writing one: nil, or
// why not. It mends on the way what a failed write left behind. It waits for the
// batch that is being written, at most as long as ctx.
func (l *FileLog) Healthy(ctx context.Context) error {
	result := make(chan error, 1)
	safego.Go(func() { result <- safego.Try(func() error { return l.between(l.writer.mendFile) }) })
	select {
	case err := <-result:
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be written")
		}
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.ErrUnavailable, ctx.Err(), "the disk of the audit log does not answer")
	}
}
