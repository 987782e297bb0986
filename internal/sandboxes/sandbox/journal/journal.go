// Package journal is what is known of a sandbox beyond the life of a daemon: what it was
// made as, where it stands, how long it may live, and what happened to it.
package journal

import (
	"context"
	"time"
)

// Journal keeps what a daemon must find of its sandboxes after the one before it
// died: which there are, how far each one had come, and what happened. What a
// sandbox is about to become is written first where something is made or taken
// away (creating, destroying), and what it has become afterwards. So what lies
// about after a crash is known to be ours, and whose it was.
//
// It is not the truth about what runs: that are the keeper and the engines, and
// where the journal disagrees it is put right. Hence a Journal need not survive a
// loss of power to the last entry, only the end of its process: after the former
// nothing lives. It must never be torn.
//
// One use, end to end: Move says that sb1 is being created, and gives event 7;
// Move says that it runs, event 8. The daemon dies. The next one reads sb1 from
// Entries, finds it with the keeper, and goes on.
//
// A Journal has one user. Errors are fault.ErrUnavailable; nothing of a call that
// failed is kept. Safe for concurrent use.
type Journal interface {
	// Move writes an entry and the event of its change, both or neither, and
	// returns the event with its number. With an event to Destroyed the entry goes.
	Move(ctx context.Context, e Entry, ev Event) (Event, error)
	// Put writes an entry in which something but its state has changed. One that is
	// not there is left out.
	Put(ctx context.Context, e Entry) error
	// Entries returns all sandboxes that are not destroyed, by id.
	Entries(ctx context.Context) ([]Entry, error)
	// Events returns those with numbers above after, in order, at most limit. The
	// oldest go when there are more than KeptEvents.
	Events(ctx context.Context, after int64, limit int) ([]Event, error)
	// Last is the number of the newest event, 0 if there was none yet.
	Last(ctx context.Context) (int64, error)
}

// KeptEvents is how many events a Journal keeps at least. It may keep a tenth
// more.
const KeptEvents = 100_000

// Entry is a sandbox in the journal.
type Entry struct {
	Info  Info  `json:"info"`
	State State `json:"state"`
	Clock Clock `json:"clock,omitzero"`
	// Key is the request's idempotency key, and Request the digest of what was
	// asked for with it.
	Key     string `json:"key,omitempty"`
	Request string `json:"request,omitempty"`
	// First is the number of its first record in the audit log; 0: unknown.
	First uint64 `json:"first,omitempty"`
	// Guards are its commands that have a time limit, by their ids, each with the active time of the sandbox
	// (Clock.ActiveAt) past which one that goes on costs the sandbox.
	Guards map[string]time.Duration `json:"guards,omitempty"`
}

// Clock is how much time a sandbox had left when that was written. Times are
// those of the machine's boot, so that a changed wall clock changes nothing.
type Clock struct {
	Lifetime Lifetime      `json:"lifetime"`       // as it is now; Info has what was asked for first
	Left     time.Duration `json:"left,omitempty"` // of the TTL
	Still    bool          `json:"still,omitempty"`
	Active   time.Duration `json:"active,omitempty"` // how long it has not stood still
	Boot     string        `json:"boot"`             // the kernel's id of this boot
	At       time.Duration `json:"at"`               // since that boot, suspended time included
}

// LeftAt is what is left of the TTL at a time of a boot. After another boot nothing
// is known, and nothing lives: what was left then is left now.
func (c Clock) LeftAt(boot string, at time.Duration) time.Duration {
	if c.Still || boot != c.Boot || at < c.At {
		return c.Left
	}
	return c.Left - (at - c.At)
}

// ActiveAt is how long it has not stood still at a time of a boot; after another boot nothing is known, as of LeftAt.
func (c Clock) ActiveAt(boot string, at time.Duration) time.Duration {
	if c.Still || boot != c.Boot || at < c.At {
		return c.Active
	}
	return c.Active + (at - c.At)
}

// Event is a change of a sandbox's state, written with its entry.
type Event struct {
	Seq     int64     `json:"seq"` // grows by one, over restarts of the daemon too
	Time    time.Time `json:"time"`
	Sandbox string    `json:"sandbox"`
	Run     string    `json:"run"`
	Token   string    `json:"token,omitempty"` // that it is shown to, see Info.ShownTo
	From    State     `json:"from,omitempty"`
	To      State     `json:"to"`
	Reason  string    `json:"reason,omitempty"`
}
