package sandbox

import (
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
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

// meter remembers the last Usage of a sandbox.
type meter struct {
	mu   sync.Mutex // held over a look, so that many who ask make one
	last Usage
	at   time.Time // of last; with a monotonic reading
}

// nextUsage makes a Usage of what an engine says. Needs mu.
func (t *meter) nextUsage(now time.Time, stats engine.Stats, limits engine.Limits) Usage {
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
