package daemon

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// watchPause is how long a queue whose events can't be read is left alone.
const watchPause = 5 * time.Second

// requests is what pending needs of the approval queue.
type requests interface {
	Get(ctx context.Context, id string) (approval.Request, error)
	LastEvent() uint64
	Watch(ctx context.Context, after uint64) iter.Seq2[approval.Event, error]
}

// pending tells sandboxes which of the requests that they wait for nobody has
// answered yet: the approval queue as package suspend wants it.
type pending struct {
	queue requests
	log   *slog.Logger

	mu      sync.Mutex    // guards changed
	changed chan struct{} // closed and replaced with every event of the queue
}

var _ suspend.Queue = (*pending)(nil)

func newPending(queue requests, log *slog.Logger) *pending {
	return &pending{queue: queue, log: log, changed: make(chan struct{})}
}

// followQueue tells sandboxes of the approval queue until the daemon ends.
func (d *Daemon) followQueue(ctx context.Context) *pending {
	p := newPending(d.approvals.queue, d.opts.Log)
	following, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	safego.Go(func() {
		defer close(done)
		safego.Stay(following, func() { p.followQueue(following) })
	})
	d.quietQueue = func() {
		end()
		<-done
	}
	return p
}

// followQueue tells of the queue's events until ctx ends.
func (p *pending) followQueue(ctx context.Context) {
	after := p.queue.LastEvent()
	for ctx.Err() == nil {
		p.tellPending() // of what may have come before it was watched
		for e, err := range p.queue.Watch(ctx, after) {
			if err != nil {
				p.log.Error("the approval queue's events can't be read; it is tried again", "err", err)
				break
			}
			after = e.Number
			p.tellPending()
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchPause):
		}
	}
}

func (p *pending) tellPending() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
}

// Pending implements suspend.Queue.
func (p *pending) Pending(ctx context.Context, ids []string) ([]string, <-chan struct{}, error) {
	p.mu.Lock()
	changed := p.changed // before the look, so that no change is missed
	p.mu.Unlock()
	var open []string
	for _, id := range ids {
		r, err := p.queue.Get(ctx, id)
		switch {
		case errors.Is(err, fault.ErrNotFound):
		case err != nil:
			return nil, changed, err
		case r.State == approval.Pending:
			open = append(open, id)
		}
	}
	return open, changed, nil
}
