package sandbox

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// helplessLooks is at how many looks in a row, of one second, the disk has to be all but full before a sandbox is ended for it of
// which nobody knows that it is at fault.
const helplessLooks = 3

// helpless takes what a look has led to. It tells whether less than half of what is to stay free is left, at several looks in a row at which
// nobody was ended, and then begins to count anew: the room that one gives back is there some looks later.
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
// ended sooner or later.
func (r *remover) endNewest(ctx context.Context, room *homeRoom) {
	having := r.cfg.Homes.Sandboxes()
	for _, s := range slices.Backward(r.registry.list()) { // by when they were made
		state, _ := s.State()
		if ending := state == Destroying || state == Destroyed || state == Failed; ending || !having[s.info.ID] || r.ownKernel(ctx, s.info.Engine) {
			continue
		}
		r.failFor(s, fault.New(fault.ErrExhausted, "only %d MiB are free of the disk that its home is on, and it is not seen what has taken the rest: the sandboxes with homes that have the host's kernel, of which it is the newest, are ended until %d MiB are free",
			room.free>>20, room.reserve>>21))
		return
	}
}
