package journal

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// State is where a sandbox stands.
type State string

// The states. A running sandbox may be on its way to disk, there, or on its way
// back: because it waits for a person (frozen), or because somebody asked for it
// (paused).
const (
	Creating     State = "creating"
	Running      State = "running"
	Snapshotting State = "snapshotting" // a copy is being written; it goes on afterwards
	Freezing     State = "freezing"
	Frozen       State = "frozen"
	Paused       State = "paused" // only a resume ends it
	Thawing      State = "thawing"
	Destroying   State = "destroying"
	Destroyed    State = "destroyed"
	Failed       State = "failed" // its processes ended without being asked, or it did not come up; its remains are being taken away
)

// allowedMoves is the state machine: where a sandbox may go from each state. Every
// sandbox begins as creating and ends as destroyed, once.
func allowedMoves() map[State][]State {
	return map[State][]State{
		"":           {Creating},
		Creating:     {Running, Failed},
		Running:      {Snapshotting, Freezing, Destroying, Failed},
		Snapshotting: {Running, Destroying, Failed},
		Freezing:     {Frozen, Paused, Running, Destroying, Failed},
		Frozen:       {Thawing, Paused, Destroying, Failed},
		Paused:       {Thawing, Frozen, Destroying, Failed},
		Thawing:      {Running, Frozen, Paused, Destroying, Failed},
		Failed:       {Destroying, Destroyed},
		Destroying:   {Destroyed},
		Destroyed:    {},
	}
}

// MayBecome reports whether a move is in the table.
func (s State) MayBecome(to State) bool { return slices.Contains(allowedMoves()[s], to) }

// Usable reports whether commands can be started and files read in this state. A request that comes
// while a copy is being written waits for that.
func (s State) Usable() bool { return s == Running || s == Snapshotting }

// Ends reports whether a sandbox in this state is being taken away, or has been.
func (s State) Ends() bool { return s == Destroying || s == Destroyed || s == Failed }

// Refuse says that a sandbox is in this state, to somebody who asked for what can't be done in it, and what
// ends the state where a person can: a fault.ErrConflict.
func (s State) Refuse(id string) error {
	if s == Paused {
		return fault.New(fault.ErrConflict, "the sandbox %s is %s; cofferdam resume %s lets it go on", id, s, id)
	}
	return fault.New(fault.ErrConflict, "the sandbox %s is %s", id, s)
}
