package sandbox

import (
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/quota"
)

// Load is how much the sandboxes of a host are promised, and who waits.
type Load struct {
	CPU         float64 // processors that those which run may use together, by their limits
	MemoryBytes int64   // the same of memory
	// Waiting is how many requests wait for a turn, by what it is for: "create", "lockfiles" (to
	// be read), "freeze" and "thaw".
	Waiting map[string]int
}

// Load tells it as of now. Members of the pool are promised nothing until they are claimed.
func (m *Manager) Load() Load {
	promised, _ := m.tracker.quotas.Promised()
	l := Load{
		CPU: promised.CPU, MemoryBytes: promised.MemoryBytes,
		Waiting: map[string]int{"create": m.creator.gate.turns.Waiting(), "lockfiles": m.planner.reading.Waiting()},
	}
	if m.cfg.Shelf != nil {
		l.Waiting["freeze"], l.Waiting["thaw"] = m.cfg.Shelf.Waiting()
	}
	return l
}

// SetHost says anew how much may be promised together. A sandbox that was promised more keeps it.
func SetHost(m *Manager, host quota.Host) { m.tracker.quotas.SetHost(host) }

// Room tells whether another sandbox with the limits of a policy that says nothing would be
// made: nil, or fault.ErrExhausted with what there is too little of.
func (m *Manager) Room() error {
	if err := m.creator.gate.checkRoom(); err != nil {
		return err
	}
	return m.tracker.quotas.MayPromise(quota.Share{CPU: defaultCPU, MemoryBytes: defaultMemory})
}
