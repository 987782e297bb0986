package channel

import (
	"sync"
	"sync/atomic"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
)

// Memory is shared by the host's sessions of one process, so that many guests together do not take
// what one may not. The zero value is ready.
type Memory struct {
	heavy  atomic.Int64 // sessions that hold more than sureHeld
	copies atomic.Int64 // with large buffers

	mu      sync.Mutex // guards sharing; taken after a session's
	sharing map[*held]struct{}
}

// limit of each session now, in bytes.
func (m *Memory) limit() int64 {
	return max(sureHeld, min(mostHeld, allHeld/max(1, m.heavy.Load())))
}

// past is what each session may hold now past its limit, in bytes.
func (m *Memory) past() int64 {
	return max(sureHeld, min(pastHeld, allPast/max(1, m.heavy.Load())))
}

// join counts a session among those that share the memory. Those that hold more than their part is now
// are to give some up, also if nothing comes on them any more.
func (m *Memory) join(h *held) {
	m.heavy.Add(1)
	limit := m.limit()
	m.mu.Lock()
	defer m.mu.Unlock()
	for one := range m.sharing {
		if one.holds.Load() > limit && !one.shedding.Load() {
			errand.Go(one.shed)
		}
	}
	if m.sharing == nil {
		m.sharing = map[*held]struct{}{}
	}
	m.sharing[h] = struct{}{}
}

// leave is the reverse of join.
func (m *Memory) leave(h *held) {
	m.heavy.Add(-1)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sharing, h)
}
