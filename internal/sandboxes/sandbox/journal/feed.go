package journal

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// The bounds of readers of events.
const (
	eventPage    = 256 // read from the journal at one time
	eventReaders = 64
	eventRetry   = 5 * time.Second
)

// Feed is a journal and the readers of its events: each reads the journal from where it
// stands, so that a slow one costs no memory and no one else anything. Safe for
// concurrent use.
type Feed struct {
	Journal
	log   *slog.Logger
	life  context.Context //nolint:containedctx // the daemon's: no reader outlives it
	group *sync.WaitGroup // the readers' goroutines

	mu      sync.Mutex // guards what follows
	changed chan struct{}
	readers int
}

// NewFeed makes one without readers. They end with life, and are in the group until then.
func NewFeed(life context.Context, group *sync.WaitGroup, j Journal, log *slog.Logger) *Feed {
	return &Feed{Journal: j, log: log, life: life, group: group, changed: make(chan struct{})}
}

// Enter writes an entry, whose state was another one before, and tells the readers. It
// is not bound to ctx's end.
func (f *Feed) Enter(ctx context.Context, e Entry, from State, reason string) error {
	_, err := f.Move(context.WithoutCancel(ctx), e, Event{
		Time: time.Now().UTC(), Sandbox: e.Info.ID, Run: e.Info.Run, Token: e.Info.ShownTo(), From: from, To: e.State, Reason: reason,
	})
	if err == nil {
		f.wakeFollowers()
	}
	return err
}

func (f *Feed) wakeFollowers() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.changed)
	f.changed = make(chan struct{})
}

// nextWrite is closed when something is written.
func (f *Feed) nextWrite() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *Feed) joinFeed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers >= eventReaders {
		return false
	}
	f.readers++
	return true
}

func (f *Feed) leaveFeed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers--
}

// Follow gives what happens from after the event with the number on: first what the
// journal has, from the oldest that is kept, then what comes. The channel is closed when
// ctx ends, with the daemon, when the journal can't be read, and when the reader is so slow that what it
// has not read yet is not kept any more. A reader that stops must end ctx. There are bounds to how many read: fault.ErrExhausted.
func (f *Feed) Follow(ctx context.Context, after int64) (<-chan Event, error) {
	last, err := f.Last(ctx)
	if err != nil {
		return nil, err
	}
	if after > last {
		return nil, fault.Invalid("the newest event is %d, so there is none after %d", last, after)
	}
	if !f.joinFeed() {
		return nil, fault.Exhausted(eventRetry, "%d clients read events already", eventReaders)
	}
	out := make(chan Event)
	safego.In(f.group, func() {
		defer f.leaveFeed()
		defer close(out)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer safego.When(f.life, cancel)()
		f.passEvents(ctx, max(after, 0), out)
	})
	return out, nil
}

// passEvents reads the journal page by page.
func (f *Feed) passEvents(ctx context.Context, after int64, out chan<- Event) {
	for begun := false; ; {
		changed := f.nextWrite() // before the look, so that nothing is missed
		page, err := f.Events(ctx, after, eventPage)
		if err != nil {
			if ctx.Err() == nil {
				f.log.Error("events can't be read", "err", err)
			}
			return
		}
		for _, e := range page {
			if begun && e.Seq != after+1 {
				return // the oldest were thrown away meanwhile
			}
			begun, after = true, e.Seq
			select {
			case out <- e:
			case <-ctx.Done():
				return
			}
		}
		if len(page) > 0 {
			continue
		}
		begun = true
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
