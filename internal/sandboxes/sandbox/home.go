package sandbox

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
)

// homeMounts are the mounts of what a request keeps of its home directory; none if it keeps
// nothing. Another mount must not lie over one, nor under it.
func (l *planner) homeMounts(ctx context.Context, req Request, p *creationPlan, shown []engine.Mount, most int64) ([]engine.Mount, error) {
	if req.Home.IsZero() {
		return nil, nil
	}
	if l.cfg.Homes == nil {
		return nil, fault.New(fault.ErrUnavailable, "no homes are kept here")
	}
	kept, err := l.cfg.Homes.Mounts(ctx, agenthome.Want{
		Home: req.Home, GID: req.HostGID, Places: req.Keeps, Inside: cmp.Or(req.Account.Home, p.template.Home), Most: most,
	})
	for _, k := range kept {
		for _, m := range shown {
			if k.Destination == m.Destination || strings.HasPrefix(k.Destination, m.Destination+"/") || strings.HasPrefix(m.Destination, k.Destination+"/") {
				return nil, fault.Invalid("the mount %s and %s, which the home %s keeps, lie in each other; choose another destination", m.Destination, k.Destination, req.Home.Name)
			}
		}
	}
	p.owned = agenthome.Above(req.Keeps)
	return kept, err
}

// How often it is looked at what homes have become, and whether there is room where they are.
const (
	homeLook = 5 * time.Second
	roomLook = time.Second
)

// tendHomes ends sandboxes whose home has more than the sandbox may have on its disk. Bytes that it
// writes meanwhile are there: no file system of the host counts them. Where the disk becomes short,
// it looks at once.
func (r *remover) tendHomes(ctx context.Context) {
	tick := time.NewTicker(roomLook)
	defer tick.Stop()
	room := homeRoom{reserve: 2 * reserveOf(r.cfg.Reserve)}
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		free, taken, err := r.cfg.Homes.Free()
		if err != nil {
			r.cfg.Log.Error("the free space of the homes' disk is not known", "error", err)
		}
		if room.lookAtFree(free); !taken || err != nil {
			room.full = 0 // looks in a row are counted
		}
		if short := taken && (err != nil || room.isShort()); short || n%int(homeLook/roomLook) == 0 {
			ended := r.endCrowded(ctx, short, &room)
			if short && err == nil && room.helpless(ended) {
				r.endNewest(ctx, &room)
			}
		}
	}
}

// homeRoom is what is free of the disk that homes are on. Its reserve is more than what a sandbox is made with: whoever fills
// the disk is ended before anybody else is refused a sandbox.
type homeRoom struct {
	reserve int64 // that stays free
	free    int64
	lost    int64 // since the look before
	full    int   // looks in a row at which nobody was ended, though hardly anything was free
	waited  int   // how often the newest was not ended for that, since another one was being taken away

	before, now map[string]bool // sandboxes that held something unseen at the look before, and at this one
}

func (h *homeRoom) lookAtFree(free int64) {
	h.free, h.lost = free, max(0, h.free-free)
	if free >= h.reserve/2 {
		h.full, h.waited = 0, 0
	}
	h.before, h.now = h.now, map[string]bool{}
}

// noteUnseen notes that a sandbox holds something unseen at this look, and tells whether it did at the one before: whoever
// passes descriptors as programs do has some in messages for a moment, and is not ended for that.
func (h *homeRoom) noteUnseen(id string) bool {
	h.now[id] = true
	return h.before[id]
}

// isShort tells whether less than the reserve is free, or will be at the next look if it goes on like this.
func (h *homeRoom) isShort() bool { return h.free-h.lost < h.reserve }

// endCrowded ends sandboxes for what their homes have. Where the disk is short it ends those, too, that keep something of
// a home where nobody sees how much: see decision 115. It tells whether it has ended one.
func (r *remover) endCrowded(ctx context.Context, short bool, room *homeRoom) (ended bool) {
	over := r.cfg.Homes.Over(ctx, func(id string) agenthome.Limit {
		s, err := r.registry.getSandbox(id)
		if err != nil {
			return agenthome.Limit{} // it is being made, or is gone
		}
		return agenthome.Limit{Bytes: s.info.Limits.DiskBytes, Seen: short && !r.hasOwnKernel(ctx, s.info.Engine)}
	})
	for id, kept := range over {
		s, err := r.registry.getSandbox(id)
		if err != nil {
			continue
		}
		if !kept.Large && !kept.Unread && !room.noteUnseen(id) {
			continue
		}
		ended = ended || !s.isOver()
		r.failFor(s, room.whyEnded(kept, s.info.Limits.DiskBytes))
		if !kept.Large && !kept.Unread && kept.Unseen.Messages+kept.Unseen.Sockets > 0 {
			r.endSenders(ctx, s, kept)
		}
	}
	return ended
}

// whyEnded says why a sandbox with such a home is ended, whose disk has so many bytes.
func (h *homeRoom) whyEnded(kept agenthome.Kept, disk int64) error {
	switch {
	case kept.Past != "" && kept.Bytes <= disk:
		return fault.New(fault.ErrExhausted, "its home %s %s, so that not all of it could be looked at, and it can't be seen how much it has", kept.Name, kept.Past)
	case kept.Large:
		return fault.New(fault.ErrExhausted, "its home %s has %d MiB in %s, and its disk is %d MiB", kept.Name, kept.Bytes>>20, text.Count(kept.Entries, "file or directory", "files and directories"), disk>>20)
	case kept.Unread:
		return fault.New(fault.ErrExhausted, "its processes hold more open files and mappings than are looked at (%d), or some that take too long, so that it can't be seen how much its home %s has", agenthome.MostDescriptors, kept.Name)
	}
	return fault.New(fault.ErrExhausted, "%d MiB must stay free of the disk that its home %s is on, %d MiB are and %d fewer than a moment ago, and it keeps %s, where it can't be seen how large what they hold is",
		h.reserve>>20, kept.Name, h.free>>20, h.lost>>20, kept.Unseen)
}

// hasOwnKernel tells whether an engine's sandboxes have a kernel of their own, in which they keep what they keep: false if nobody
// knows.
func (r *remover) hasOwnKernel(ctx context.Context, name string) bool {
	eng, ok := r.cfg.Engines[name]
	if !ok {
		return false
	}
	caps, err := eng.Capabilities(ctx)
	return err == nil && slices.Contains(caps.Enforces, engine.ControlOwnKernel)
}
