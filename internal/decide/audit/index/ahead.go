package index

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// read are some records, and what kept the log from giving the next.
type read struct {
	records []audit.Record
	err     error
}

// readAhead reads the records of a range until ctx is done.
func readAhead(ctx context.Context, log Log, from, end uint64) <-chan read {
	ahead := make(chan read, 4)
	send := func(r read) bool {
		select {
		case ahead <- r:
			return true
		case <-ctx.Done():
			return false
		}
	}
	safego.Go(func() {
		defer close(ahead)
		var some []audit.Record
		err := safego.Try(func() error {
			for r, err := range log.Records(ctx, audit.Filter{FromSeq: from}) {
				if err != nil || r.Seq >= end {
					return err
				}
				if some = append(some, r); len(some) == 256 {
					if !send(read{some, nil}) {
						return ctx.Err()
					}
					some = nil
				}
			}
			return nil
		})
		send(read{some, err})
	})
	return ahead
}
