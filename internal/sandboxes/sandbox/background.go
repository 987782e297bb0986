package sandbox

import (
	"context"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// background is what goes on beside any request, for as long as the daemon lives.
type background struct {
	ctx    context.Context //nolint:containedctx // the manager's own life: what goes on in the background outlives any request
	cancel context.CancelFunc
	group  sync.WaitGroup
	turns  *fairqueue.Shares
}

// newBackground makes one in which so many things that are done in turn go on at once.
func newBackground(atOnce int) *background {
	ctx, cancel := context.WithCancel(context.Background())
	return &background{ctx: ctx, cancel: cancel, turns: fairqueue.New(fairqueue.Fair(atOnce, 0))}
}

// doInBackground does a thing in a goroutine of its own. It returns at once.
func (b *background) doInBackground(thing func()) { safego.In(&b.group, thing) }

// stayInBackground does what goes on until the daemon ends.
func (b *background) stayInBackground(thing func()) {
	b.doInBackground(func() { safego.Stay(b.ctx, thing) })
}

// inTurn does a thing when it is its owner's turn: a few at one time, and no owner's many
// before another's few. It returns at once.
func (b *background) inTurn(owner string, thing func()) {
	b.doInBackground(func() {
		_, leave, err := b.turns.Take(fairqueue.For(context.Background(), owner)) // nothing ends a wait
		if err == nil {
			defer leave()
			thing()
		}
	})
}

// isOver tells whether the daemon ends.
func (b *background) isOver() bool { return b.ctx.Err() != nil }
