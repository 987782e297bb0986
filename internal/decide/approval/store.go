package approval

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Store keeps requests for a Queue. It is a picture of the log: the Queue writes
// a record first, then applies it here, and what a crash left out is applied from
// the log at the next Open. A Store has one user, which calls Apply and Reset one
// at a time, and everything else at any time.
//
// One use, end to end: Position says that records up to 41 are in; the Queue
// reads the log from 42 on and finds that request ap-k3m7qx was approved; it Gets
// the entry, changes it, and Applies it with position 42. From then on Answers
// has it for the runs in its scope.
//
// Errors are fault.ErrUnavailable, but for Get's fault.ErrNotFound.
type Store interface {
	// Position is the last record of the log that the store has.
	Position(ctx context.Context) (Position, error)
	// Apply takes the entries as they are now, the events and the position, all or
	// nothing, and returns when they would survive a loss of power.
	Apply(ctx context.Context, b Batch) error
	// Reset forgets everything.
	Reset(ctx context.Context) error
	// Get is one request; fault.ErrNotFound if there is none.
	Get(ctx context.Context, id string) (Entry, error)
	// List is what the filter selects, newest first.
	List(ctx context.Context, f Filter) ([]Entry, error)
	// Answers are the approved and denied requests about a project's releases, in
	// the order in which they were made, whose scope has the run or the policy.
	// Whether their time is over, and whose the run is, is the caller's to see.
	Answers(ctx context.Context, project pkgref.Ref, run, policy string) ([]Entry, error)
	// Due are entries whose time is over at now, at most limit, and the time at
	// which the next of all others is (zero: none).
	Due(ctx context.Context, now time.Time, limit int) (due []Entry, next time.Time, err error)
	// Events are those after a number, in order, at most limit.
	Events(ctx context.Context, after uint64, limit int) ([]Event, error)
}

// Position is a record's number and time: together they tell one log from
// another. With a zero At no record was applied yet.
type Position struct {
	Seq uint64
	At  time.Time
}

// Batch is what one Apply changes.
type Batch struct {
	Entries  []Entry
	Events   []Event // Request is not kept, only its ID
	Position Position
}

// Entry is a request as a Store keeps it.
type Entry struct {
	Request
	Born uint64 // number of the record that it began with; no two have the same
	// Runs are all that asked, in order, each once. They are only ever added to.
	Runs []AskingRun
}

// AskingRun is a run that asked, and the policy (by digest) that it is under.
type AskingRun struct {
	Run    string `json:"run"`
	Policy string `json:"policy"`
}

// Ends is when the clock alone ends a request or its answer; zero: never.
func (e Entry) Ends() time.Time {
	switch {
	case e.State == Pending:
		return e.Expires
	case e.isLive():
		return e.Answer.Expires
	}
	return time.Time{}
}

// isLive reports an answer that has not ended on record.
func (e Entry) isLive() bool {
	return e.Answer != nil && (e.State == Approved || e.State == Denied)
}

// Subjects are whom a live answer holds for, as a Store finds it: run ids,
// policy digests, or one "" for everybody.
func (e Entry) Subjects() []string {
	if !e.isLive() || e.IsTree() { // what a tree's answer admits are its members' answers
		return nil
	}
	switch e.Answer.Scope {
	case ScopeRun, ScopeOnce:
		return e.Answer.Runs
	case ScopePolicy:
		return e.Answer.Policies
	case ScopeEverywhere:
		return []string{""}
	}
	return nil
}

// Filter selects requests; its zero value selects all.
type Filter struct {
	States    []State
	Run       string // that asked
	Group     string
	Ecosystem pkgref.Ecosystem
	Package   string // canonical name
	Before    uint64 // only those born before this record; 0: all
	Limit     int    // 0: no limit
}

// EventName says what happened to a request.
type EventName string

// The events.
const (
	EventAsked      EventName = "asked"
	EventJoined     EventName = "joined" // another run asked, or more became known of it
	EventApproved   EventName = "approved"
	EventDenied     EventName = "denied"
	EventExpired    EventName = "expired"
	EventRevoked    EventName = "revoked"
	EventSuperseded EventName = "superseded"

	// eventSeen is on record, and nobody is told: nothing has happened to the request.
	eventSeen EventName = "seen"
)

// Event is a change of a request. Numbers grow with time, with gaps.
type Event struct {
	Number uint64    `json:"number"` // its record's number in the log, plus one
	At     time.Time `json:"at"`
	Name   EventName `json:"event"`
	ID     string    `json:"-"`
	// Request is the request as it is when the event is read, not as it was.
	Request Request `json:"request"`
}
