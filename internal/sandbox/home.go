package sandbox

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/homes"
)

// home are the mounts of what a request keeps of its home directory; none if it keeps
// nothing. Another mount must not lie over one, nor under it.
func (l *planner) home(ctx context.Context, req Request, p *plan, shown []engine.Mount, most int64) ([]engine.Mount, error) {
	if req.Home.IsZero() {
		return nil, nil
	}
	if l.cfg.Homes == nil {
		return nil, fault.New(fault.ErrUnavailable, "no homes are kept here")
	}
	kept, err := l.cfg.Homes.Mounts(ctx, homes.Want{
		Home: req.Home, GID: req.HostGID, Places: req.Keeps, Inside: cmp.Or(req.Account.Home, p.template.Home), Most: most,
	})
	for _, k := range kept {
		for _, m := range shown {
			if k.Destination == m.Destination || strings.HasPrefix(k.Destination, m.Destination+"/") || strings.HasPrefix(m.Destination, k.Destination+"/") {
				return nil, fault.Invalid("the mount %s and %s, which the home %s keeps, lie in each other; choose another destination", m.Destination, k.Destination, req.Home.Name)
			}
		}
	}
	p.owned = homes.Above(req.Keeps)
	return kept, err
}

// homeLook is how often it is looked at what homes have become.
const homeLook = 5 * time.Second

// tendHomes ends sandboxes whose home has more than the sandbox may have on its disk. What
// it writes meanwhile is there: no file system of the host counts it.
func (r *remover) tendHomes(ctx context.Context) {
	tick := time.NewTicker(homeLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.endCrowded(ctx)
		}
	}
}

func (r *remover) endCrowded(ctx context.Context) {
	over := r.cfg.Homes.Over(ctx, func(id string) int64 {
		s, err := r.registry.get(id)
		if err != nil {
			return 0 // it is being made, or is gone
		}
		return s.info.Limits.DiskBytes
	})
	for id, kept := range over {
		s, err := r.registry.get(id)
		if err != nil {
			continue
		}
		why := fault.New(fault.ErrExhausted, "its home %s has %d MiB in %d files and directories, and its disk is %d MiB", kept.Name, kept.Bytes>>20, kept.Entries, s.info.Limits.DiskBytes>>20)
		r.background.do(func() { r.fail(r.background.ctx, s, engine.Exit{Code: lostCode, Reason: why.Error()}) })
	}
}
