package sandbox

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
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

// endNewest ends the sandbox with a home that was made last, of those whose kernel is the host's. Such a kernel keeps room of a disk for
// processes in ways that no look finds, so there is nothing else by which to choose: whoever holds the room is among them, and is
// ended sooner or later. None is ended while one of them is being taken away, whose room is not there yet.
func (r *remover) endNewest(ctx context.Context, room *homeRoom) {
	having := r.cfg.Homes.Sandboxes()
	var newest *Sandbox
	for _, s := range r.registry.list() { // by when they were made
		if !having[s.info.ID] || !r.hostKernel(ctx, s.info.Engine) {
			continue
		}
		switch {
		case !s.ending():
			newest = s
		case !s.stuck():
			return
		}
	}
	if newest == nil {
		return
	}
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

// ending tells whether a sandbox is being taken away, or is gone.
func (s *Sandbox) ending() bool {
	state, _ := s.State()
	return state == Destroying || state == Destroyed || state == Failed
}

// stuck tells whether one that is being taken away could not be, so far.
func (s *Sandbox) stuck() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removal.failed.Tries > 0
}
