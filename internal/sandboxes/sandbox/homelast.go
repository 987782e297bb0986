package sandbox

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// helplessLooks is at how many looks in a row, of one second, the disk has to be all but full before a sandbox is ended for it of
// which nobody knows that it is at fault.
const helplessLooks = 3

// helpless takes what a look at a short disk has led to. It tells whether less than half of what is to stay free is left, at several looks in a
// row at which nobody was ended, and then begins to count anew.
func (h *homeRoom) helpless(ended bool) bool {
	if ended || h.free >= h.reserve/2 {
		h.full = 0
		return false
	}
	if h.full++; h.full < helplessLooks {
		return false
	}
	h.full = 0
	return true
}

// waitsForEnds is how often the bound is reached, and another sandbox being taken away, before the newest is ended all the same.
const waitsForEnds = 10

// endNewest ends the sandbox with a home that was made last, of those whose kernel is the host's. Such a kernel keeps room of a disk for
// processes in ways that no look finds, so there is nothing else by which to choose: whoever holds the room may be among them, and is
// ended sooner or later then. While any sandbox is being taken away it waits for the room of that, for half a minute at most.
func (r *remover) endNewest(ctx context.Context, room *homeRoom) {
	having := r.cfg.Homes.Sandboxes()
	var newest *Sandbox
	leaving := false
	for _, s := range r.registry.listSandboxes() { // by when they were made
		switch {
		case s.isOver():
			leaving = leaving || s.Stuck().Tries == 0
		case having[s.info.ID] && r.hostKernel(ctx, s.info.Engine):
			newest = s
		}
	}
	if newest == nil {
		return
	}
	if room.waited++; leaving && room.waited < waitsForEnds {
		return
	}
	room.waited = 0
	r.failFor(newest, fault.New(fault.ErrExhausted, "only %d MiB are free of the disk that its home is on, and it is not seen what has taken the rest: the sandboxes with homes that have the host's kernel, of which it is the newest, are ended until %d MiB are free",
		room.free>>20, room.reserve>>21))
}

// hostKernel tells whether an engine's sandboxes are known to have the host's kernel.
func (r *remover) hostKernel(ctx context.Context, name string) bool {
	eng, ok := r.cfg.Engines[name]
	if !ok {
		return false
	}
	caps, err := eng.Capabilities(ctx)
	return err == nil && !slices.Contains(caps.Enforces, engine.ControlOwnKernel)
}
