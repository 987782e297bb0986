package approval

import (
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
)

// change is one step in a request's life: what one record of the log says. The
// state of every request is the sum of its changes, in the order of the log;
// apply is the only place that adds them up, live and after a crash.
type change struct {
	event EventName
	id    string
	seq   uint64    // of the record; set when it is written
	at    time.Time // of the record; set when it is written
	batch changeBatch

	// Of asked and joined.
	matter
	asker    Asker
	rule     string
	reason   string
	group    string
	files    []File             // new ones, or known ones with more known of them
	evidence *evidence.Evidence // nil: as it was
	expires  time.Time          // of asked: the request's; of approved, denied: the answer's

	byPerson bool     // of asked
	notes    []string // of asked
	members  []Member // of a tree's asked, and of joined: more of them
	// tree is what a member's change is part of: nobody is told of it apart from the
	// tree's own.
	tree string

	// Of approved and denied.
	by      string // also of revoked and seen
	scope   Scope
	digests []string
	// revision is the one that the answer was given on; 0: a denial that names none.
	revision uint64

	ended      string // of expired, revoked, superseded
	replacedBy string // of superseded
}

// changeBatch joins changes that take effect together or not at all; the zero batch
// is a change for itself.
type changeBatch struct {
	id    string
	n, of int // the nth of that many, from 1
}

func (c change) newState() State {
	switch c.event {
	case EventApproved:
		return Approved
	case EventDenied:
		return Denied
	case EventExpired, EventRevoked:
		return Expired
	case EventSuperseded:
		return Superseded
	case EventAsked, EventJoined, eventSeen:
	}
	return Pending
}

// applyChange returns the entry as it is after the change. It changes nothing that e
// shares with others.
func applyChange(e Entry, c change) Entry {
	e.Updated = c.at
	switch c.event {
	case EventAsked:
		e = Entry{Born: c.seq, Request: Request{
			ID: c.id, Kind: c.kindOf(), Package: c.pkg, Host: c.host, Call: c.call, Upstream: c.upstream, Rule: c.rule, Reason: c.reason, Group: c.group,
			Revision: 1, Created: c.at, Updated: c.at, Expires: c.expires, Asks: []Asker{}, Files: []File{}, Notes: c.notes,
		}}
		if len(c.members) == 0 {
			e.Tree = c.tree
		}
		if c.byPerson {
			e.Seen = &Seen{By: c.asker.User, At: c.at}
		}
		e = e.joined(c)
	case EventJoined:
		e = e.joined(c).revised(e, c)
	case eventSeen:
		if e.Seen == nil {
			e.Seen = &Seen{By: c.by, At: c.at}
		}
	case EventApproved, EventDenied:
		e.Answer = &Answer{
			State: c.newState(), By: c.by, At: c.at, Scope: c.scope, Reason: c.reason,
			Expires: c.expires, Digests: slices.Clone(c.digests), Revision: c.revision,
		}
		e.Answer.Runs, e.Answer.Policies = e.scopeOf(c.scope)
	case EventExpired:
		e.Ended = c.ended
	case EventRevoked:
		e.Ended = "revoked by " + c.by
		if c.reason != "" {
			e.Ended += ": " + c.reason
		}
	case EventSuperseded:
		e.Ended, e.ReplacedBy = c.ended, c.replacedBy
	}
	e.State = c.newState()
	return e
}

// isQuiet tells that a change of e is no event: the tree's own tells of it. A listener that was
// told of a request before it was in a tree is told of its answer, too.
func (c change) isQuiet(e Entry) bool {
	if c.tree == "" {
		return false
	}
	return c.event == EventAsked || c.event == EventJoined || e.Tree != ""
}

// scopeOf are the runs, or the policies, that an answer given now is for.
func (e Entry) scopeOf(scope Scope) (runs, policies []string) {
	for _, w := range e.Runs {
		switch scope {
		case ScopeRun, ScopeOnce:
			runs = append(runs, w.Run)
		case ScopePolicy:
			if w.Policy != "" && !slices.Contains(policies, w.Policy) {
				policies = append(policies, w.Policy)
			}
		case ScopeEverywhere:
		}
	}
	return runs, policies
}

func (e Entry) joined(c change) Entry {
	if c.asker.Run != "" && !e.askedBy(c.asker.Run, c.asker.Policy) && len(e.Runs) < maxRuns {
		asker := c.asker
		asker.At = c.at
		e.Runs = append(slices.Clip(e.Runs), AskingRun{Run: asker.Run, Policy: asker.Policy})
		e.Asked = len(e.Runs)
		if len(e.Asks) < MaxAsks {
			e.Asks = append(slices.Clip(e.Asks), asker)
		}
	}
	e.Files = mergeFiles(e.Files, c.files)
	e.Members = append(slices.Clip(e.Members), c.members...)
	if c.evidence != nil {
		e.Evidence = *c.evidence
	}
	return e
}

func (e Entry) askedBy(run, policy string) bool {
	return slices.Contains(e.Runs, AskingRun{Run: run, Policy: policy})
}

// mergeFiles adds files, and what more is known of those that are there; the
// result shares nothing with known that it changes.
func mergeFiles(known, more []File) []File {
	known = slices.Clone(known)
	for _, f := range more {
		if i := slices.IndexFunc(known, func(k File) bool { return k.Name == f.Name }); i >= 0 {
			known[i] = mergeFile(known[i], f)
		} else {
			known = append(known, f)
		}
	}
	return known
}

func mergeFile(known, more File) File {
	digests := slices.Clone(known.Digests)
	for _, d := range more.Digests {
		if !slices.Contains(digests, d) {
			digests = append(digests, d)
		}
	}
	known.Digests = digests
	known.Scripts = known.Scripts || more.Scripts
	if known.Kind == "" {
		known.Kind = more.Kind
	}
	if known.Size == 0 {
		known.Size = more.Size
	}
	if known.Published.IsZero() {
		known.Published = more.Published
	}
	return known
}

// asOf is the request as the clock has it: what has run out counts as expired,
// whether that is on record yet or not.
func (e Entry) asOf(now time.Time) Request {
	r := e.Request
	r.Revision = max(r.Revision, 1) // one that an earlier version began is at its first
	if ends := e.Ends(); !ends.IsZero() && !now.Before(ends) {
		r.Ended = endedByClock(e.State)
		r.State = Expired
	}
	return r
}

func endedByClock(s State) string {
	if s == Pending {
		return "nobody answered in time"
	}
	return "the answer's time is over"
}
