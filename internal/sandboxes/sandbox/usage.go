package sandbox

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// diskTimeout is how long a guest may take to say how full its disk is.
const diskTimeout = 5 * time.Second

// Usage tells what a sandbox has and uses: of the host's accounts, but for the
// disk, which is the guest's word and what the limit is if it does not give it.
// It does not count as use.
func (n *inside) Usage(ctx context.Context, id string) (Usage, error) {
	s, err := n.registry.getSandbox(id)
	if err != nil {
		return Usage{}, err
	}
	if state, _ := s.State(); !state.Usable() {
		return Usage{}, state.Refuse(id)
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
	usage := s.usage.nextUsage(now, stats, s.info.Limits)
	if disk, err := n.askDisk(ctx, s); err == nil {
		usage.DiskBytes = disk.Total - disk.Free
		if usage.DiskLimit == 0 {
			usage.DiskLimit = disk.Total
		}
	}
	s.usage.last, s.usage.at = usage, now
	return usage, nil
}

// askDisk asks the guest how full its root file system is.
func (n *inside) askDisk(ctx context.Context, s *Sandbox) (channel.DiskUsage, error) {
	var disk channel.DiskUsage
	ctx, cancel := context.WithTimeout(ctx, diskTimeout)
	defer cancel()
	reply, err := n.cfg.Keeper.Call(ctx, s.info.ID, channel.Call{Kind: channel.CallUsage})
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
