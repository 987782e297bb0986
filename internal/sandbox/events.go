package sandbox

import (
	"context"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// What readers of events may have.
const (
	eventPage    = 256 // read from the journal at one time
	eventReaders = 64
)

// news wakes the readers of events: each reads the journal from where it stands, so
// that a slow one costs no memory and no one else anything.
type news struct {
	mu      sync.Mutex // guards what follows
	changed chan struct{}
	readers int
}

func newNews() *news { return &news{changed: make(chan struct{})} }

func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *news) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

func (n *news) join() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.readers >= eventReaders {
		return false
	}
	n.readers++
	return true
}

func (n *news) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.readers--
}

// Events returns a channel of what happens from after the event with the number on:
// first what the journal has, from the oldest that is kept, then what comes. It is
// closed when ctx ends, with the daemon, when the journal can't be read, and when
// the reader is so slow that what it has not read yet is not kept any more. Who
// stops reading must end ctx. There are bounds to how many read: fault.ErrExhausted.
func (m *Manager) Events(ctx context.Context, after int64) (<-chan Event, error) {
	last, err := m.cfg.Journal.Last(ctx)
	if err != nil {
		return nil, err
	}
	if after > last {
		return nil, fault.Invalid("the newest event is %d, so there is none after %d", last, after)
	}
	if !m.news.join() {
		return nil, fault.Exhausted(eventRetry, "%d clients read events already", eventReaders)
	}
	out := make(chan Event)
	errand.In(&m.background, func() {
		defer m.news.leave()
		defer close(out)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer errand.When(m.ctx, cancel)()
		m.pass(ctx, max(after, 0), out)
	})
	return out, nil
}

// pass reads the journal page by page.
func (m *Manager) pass(ctx context.Context, after int64, out chan<- Event) {
	for begun := false; ; {
		changed := m.news.next() // before the look, so that nothing is missed
		page, err := m.cfg.Journal.Events(ctx, after, eventPage)
		if err != nil {
			if ctx.Err() == nil {
				m.cfg.Log.Error("events can't be read", "err", err)
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
