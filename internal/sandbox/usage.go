package sandbox

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Usage is what a sandbox has and uses.
type Usage struct {
	Time        time.Time `json:"time"`
	CPUCount    float64   `json:"cpu_count"`
	CPUNanos    int64     `json:"cpu_nanos"`   // since it was started
	CPUPercent  float64   `json:"cpu_percent"` // of one core, since the last look; 0 at the first
	MemoryBytes int64     `json:"memory_bytes"`
	MemoryLimit int64     `json:"memory_limit"`
	DiskBytes   int64     `json:"disk_bytes"`
	DiskLimit   int64     `json:"disk_limit"`
	Processes   int       `json:"processes"`
	MemoryKills int64     `json:"memory_kills"` // processes that were killed because the memory was full
}

// usageAge is how old a Usage may be that somebody else has asked for.
const usageAge = time.Second

// diskPatience is how long a guest may take to say how full its disk is.
const diskPatience = 5 * time.Second

// meter remembers the last Usage of a sandbox.
type meter struct {
	mu   sync.Mutex // held over a look, so that many who ask make one
	last Usage
	at   time.Time // of last; with a monotonic reading
}

// Usage tells what a sandbox has and uses: of the host's accounts, but for the
// disk, which is the guest's word and what the limit is if it does not give it.
// It does not count as use.
func (m *Manager) Usage(ctx context.Context, id string) (Usage, error) {
	s, err := m.Get(id)
	if err != nil {
		return Usage{}, err
	}
	if state, _ := s.State(); !state.Usable() {
		return Usage{}, fault.New(fault.ErrConflict, "the sandbox %s is %s", id, state)
	}
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	now := time.Now()
	stats, err := s.instance.Stats(ctx)
	if err != nil {
		return Usage{}, err
	}
	if !s.usage.at.IsZero() && now.Sub(s.usage.at) < usageAge {
		last := s.usage.last
		last.MemoryKills = stats.MemoryKills // what somebody asks right after a command's end
		return last, nil
	}
	usage := s.usage.next(now, stats, s.info.Limits)
	if disk, err := m.disk(ctx, s); err == nil {
		usage.DiskBytes = disk.Total - disk.Free
		if usage.DiskLimit == 0 {
			usage.DiskLimit = disk.Total
		}
	}
	s.usage.last, s.usage.at = usage, now
	return usage, nil
}

// next makes a Usage of what an engine says. Needs mu.
func (t *meter) next(now time.Time, stats engine.Stats, limits engine.Limits) Usage {
	usage := Usage{
		Time: now.UTC(), CPUCount: limits.CPU, CPUNanos: stats.CPUNanos, MemoryBytes: stats.MemoryBytes,
		MemoryLimit: limits.MemoryBytes, DiskLimit: limits.DiskBytes, Processes: stats.Pids, MemoryKills: stats.MemoryKills,
	}
	passed, used := now.Sub(t.at), stats.CPUNanos-t.last.CPUNanos
	if !t.at.IsZero() && passed > 0 && used > 0 {
		usage.CPUPercent = 100 * float64(used) / float64(passed)
	}
	return usage
}

// disk asks the guest how full its root file system is.
func (m *Manager) disk(ctx context.Context, s *Sandbox) (channel.DiskUsage, error) {
	var disk channel.DiskUsage
	ctx, cancel := context.WithTimeout(ctx, diskPatience)
	defer cancel()
	reply, err := m.cfg.Keeper.Call(ctx, s.info.ID, channel.Call{Kind: channel.CallUsage})
	if err != nil {
		return disk, err
	}
	if err := json.Unmarshal(reply.Body, &disk); err != nil {
		return disk, fault.Wrap(fault.ErrInvalid, err, "the guest's answer can't be read")
	}
	if disk.Total < 0 || disk.Free < 0 || disk.Free > disk.Total {
		return disk, fault.Invalid("the guest says that %d of %d bytes are free", disk.Free, disk.Total)
	}
	return disk, nil
}
