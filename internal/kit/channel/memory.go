package channel

import (
	"sync"
	"sync/atomic"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Memory is shared by the host's sessions of one process, so that many guests together do not take
// what one may not. The zero value is ready.
type Memory struct {
	heavy  atomic.Int64 // sessions that hold more than sureHeld
	copies atomic.Int64 // with large buffers

	mu      sync.Mutex // guards sharing; taken after a session's
	sharing map[*sessionMemory]struct{}
}

// sessionLimit of each session now, in bytes.
func (m *Memory) sessionLimit() int64 {
	return max(sureHeld, min(mostHeld, allHeld/max(1, m.heavy.Load())))
}

// pastLimit is what each session may hold now past its limit, in bytes.
func (m *Memory) pastLimit() int64 {
	return max(sureHeld, min(pastHeld, allPast/max(1, m.heavy.Load())))
}

// joinSession counts a session among those that share the memory. Those that hold more than their part is now
// are to give some up, also if nothing comes on them any more.
func (m *Memory) joinSession(h *sessionMemory) {
	m.heavy.Add(1)
	limit := m.sessionLimit()
	m.mu.Lock()
	defer m.mu.Unlock()
	for one := range m.sharing {
		if one.holds.Load() > limit && !one.shedding.Load() {
			safego.Go(one.shedExcess)
		}
	}
	if m.sharing == nil {
		m.sharing = map[*sessionMemory]struct{}{}
	}
	m.sharing[h] = struct{}{}
}

// leaveSession takes the session from those that share the memory.
func (m *Memory) leaveSession(h *sessionMemory) {
	m.heavy.Add(-1)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sharing, h)
}
