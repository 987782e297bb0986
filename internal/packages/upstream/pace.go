package upstream

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// paced reads a body and cancels its request when a window passes with too few
// bytes. There is no limit on the whole: a large file may take an hour, a body
// that drips may not.
type paced struct {
	body  io.Reader
	moved atomic.Int64
	timer *time.Timer
}

// paceBody wraps a body. stop ends the watch.
func paceBody(body io.Reader, window time.Duration, least int64, cancel context.CancelCauseFunc) (r io.Reader, stop func()) {
	p := &paced{body: body}
	p.timer = safego.After(window, func() {
		if p.moved.Swap(0) < least {
			cancel(fault.New(fault.ErrUnavailable, "the upstream sends its answer too slowly"))
			return
		}
		p.timer.Reset(window)
	})
	return p, func() { p.timer.Stop() }
}

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	n, err := p.body.Read(b)
	p.moved.Add(int64(n))
	return n, err
}
