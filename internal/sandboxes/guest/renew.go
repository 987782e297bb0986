package guest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// adoptTimeout is how long a command whose stream was lost by a reset holds
// its output back for whoever adopts it; then the output is read and thrown
// away, so that the command does not hang.
const adoptTimeout = time.Minute

// renewed is called when the host has started the session anew: this sandbox is
// a copy. Whom its source waited for is not waited for here, since the question
// went with the source's streams.
func (a *Agent) renewed() { a.paid.setStopped(false) }

// untilClosed is a context that ends when over is closed.
func untilClosed(ctx context.Context, over <-chan struct{}) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-over:
		case <-ctx.Done():
		}
	}()
	return ctx
}

// outlet is where a command's frames go: the stream of the call that started
// it or, after a reset, of the one that adopted it. Between the two, frames
// wait.
type outlet struct {
	ctx     context.Context //nolint:containedctx // the command's own life, which frames wait within
	clock   *clock
	timeout time.Duration // adoptTimeout

	mu       sync.Mutex    // guards the rest
	stream   *channel.Conn // nil while there is none
	claimed  bool          // somebody is about to give one
	unwanted bool          // nobody came in time
	losses   int           // how often a stream was lost
	changed  chan struct{} // closed, and made anew, when one of these changes
}

var _ frameWriter = (*outlet)(nil)

func newOutlet(ctx context.Context, stream *channel.Conn, clock *clock) *outlet {
	return &outlet{ctx: ctx, clock: clock, timeout: adoptTimeout, stream: stream, changed: make(chan struct{})}
}

// WriteFrame waits while there is no stream; what nobody wants is dropped. A
// frame that was on its way when its stream was lost is sent again whole.
func (o *outlet) WriteFrame(kind channel.FrameType, payload []byte) error {
	for {
		stream, unwanted, changed := o.streamNow()
		if stream == nil {
			if unwanted {
				return nil
			}
			if err := o.waitChange(changed); err != nil {
				return err
			}
			continue
		}
		err := stream.WriteFrame(kind, payload)
		if !errors.Is(err, channel.ErrReset) {
			return err
		}
		o.loseStream(stream)
	}
}

// announce tells that the command runs, if there is a stream; who adopts it
// tells its host.
func (o *outlet) announce(started channel.Started) error {
	stream, _, _ := o.streamNow()
	if stream == nil {
		return nil
	}
	err := stream.WriteJSON(channel.FrameStarted, started)
	if errors.Is(err, channel.ErrReset) {
		o.loseStream(stream)
		return nil
	}
	return err
}

// awaitStream returns the stream once there is one, however long that takes.
func (o *outlet) awaitStream() (*channel.Conn, error) {
	for {
		stream, _, changed := o.streamNow()
		if stream != nil {
			return stream, nil
		}
		if err := o.waitChange(changed); err != nil {
			return nil, err
		}
	}
}

func (o *outlet) streamNow() (stream *channel.Conn, unwanted bool, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stream, o.unwanted, o.changed
}

func (o *outlet) waitChange(changed <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-o.ctx.Done():
		return o.ctx.Err()
	}
}

// wakeWaiters has everybody look who waits for a change. It needs mu.
func (o *outlet) wakeWaiters() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// loseStream takes a stream away that a reset ended, unless there is another already.
func (o *outlet) loseStream(stream *channel.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stream != stream {
		return
	}
	o.stream = nil
	o.losses++
	o.wakeWaiters()
	go o.giveUpWaiting(o.losses)
}

// giveUpWaiting gives up waiting for whoever adopts the command.
func (o *outlet) giveUpWaiting(loss int) {
	if o.clock.waitCounted(o.ctx, o.timeout) != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.losses == loss && o.stream == nil {
		o.unwanted = true
		o.wakeWaiters()
	}
}

// claimOutlet makes the caller the only one who may give a stream; false if there is
// one that works, or somebody has claimed it.
func (o *outlet) claimOutlet() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.claimed {
		return false
	}
	if o.stream != nil {
		select {
		case <-o.stream.Over():
		default:
			return false
		}
	}
	o.claimed = true
	return true
}

// giveStream ends a claim, with a stream or nil.
func (o *outlet) giveStream(stream *channel.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claimed = false
	if stream != nil {
		o.stream, o.unwanted = stream, false
		o.wakeWaiters()
	}
}
