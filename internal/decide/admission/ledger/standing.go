// Package ledger is what one run knows of releases: the one state of each that the run
// has met and how it moves, what each requires, and which reading may lead to a package.
// It does no input or output; what judges a release comes to it as Rules.
//
// An edge says "release A requires package B", of an admitted release or, to explain a refusal, of
// another. A release is weighed once the questions that look at a file of it (age, kind, digest,
// scripts) were answered with yes, or once the facts are known by which they can be asked again.
package ledger

import "github.com/cofferdam-dev/cofferdam/internal/decide/policy"

// State is where a release stands in a run.
type State uint8

// The states. The requirements of a release admit something in one of them only:
// Admitted, through an entry.
const (
	Unknown  State = iota // the run was told nothing of it, or that is forgotten
	Shown                 // a page lists it, or its metadata was read
	Held                  // it waits for a person
	Admitted              // the policy, or a person, lets it in
	Refused
)

// String names a state.
func (s State) String() string {
	switch s {
	case Shown:
		return "shown"
	case Held:
		return "held"
	case Admitted:
		return "admitted"
	case Refused:
		return "refused"
	case Unknown:
	}
	return "unknown"
}

// Standing is a release's state and what it rests on.
type Standing struct {
	State State
	// Through is the entry through which it is admitted; "": what it requires admits
	// nothing. Only of Admitted.
	Through string
	// File is the file whose verdict this is; "": that of a page, a lockfile, or a
	// sandbox that this one is a copy of.
	File string
	// Facts are those of that file; nil: they are not known here.
	Facts *policy.FileFacts
	// Listed tells that a page has weighed a file of it, or a lockfile pins it: the
	// release alone has then to be asked about.
	Listed bool
	// ByEdge tells that it is admitted only because something requires it.
	ByEdge bool
}

// Admits is the entry through which what the release requires is admitted; "" is
// none.
func (s Standing) Admits() string {
	if s.State != Admitted {
		return ""
	}
	return s.Through
}

// Kind is what a question said of a release.
type Kind uint8

// The kinds of events.
const (
	Read     Kind = iota // its metadata was read; with a file, one that is denied
	Listed               // a page lists it or a lockfile pins it, so that a requirement may admit it
	Waits                // a file of it, or all of it that a page shows, waits for a person
	Allowed              // a file of it is allowed, or a page says that one is
	Denied               // a file of it is denied, or all of it
	Loosened             // what required it may not hold any more: it has to be reached again
)

// Event is what one question said. Its File and Facts are those of the file that
// was weighed; without a file it is about all that is known of the release.
type Event struct {
	Kind    Kind
	Through string
	File    string
	Facts   *policy.FileFacts
	ByEdge  bool
}

// advance is where a release stands after an event. There is no other way to move it.
//
// A standing that rests on one file is moved by that file and by none beside it: a
// source distribution that is refused leaves the wheel admitted, and a page, which
// knows less than who looked into the file, does not lift what the file is refused
// for. Within Admitted the entry stays the first one.
func advance(from Standing, e Event) Standing {
	switch e.Kind {
	case Read:
		return standingRead(from, e)
	case Listed:
		return standingListed(from)
	case Waits:
		if from.restsElsewhere(e) || e.File == "" && from.State == Refused && from.File != "" {
			return from
		}
		return Standing{State: Held, File: e.File, Facts: e.Facts}
	case Allowed:
		return standingAdmitted(from, e)
	case Denied:
		if e.File != "" && from.restsElsewhere(e) {
			return from
		}
		return Standing{State: Refused, File: e.File, Facts: e.Facts}
	case Loosened:
		if from.State == Admitted && from.ByEdge {
			return Standing{State: Shown, File: from.File, Facts: from.Facts, Listed: from.Listed}
		}
		return from
	}
	return Standing{} // an event that nobody knows: nothing is known of the release any more
}

// restsElsewhere tells that a standing that lets a file in, or has it wait, rests on
// another file than the event's.
func (s Standing) restsElsewhere(e Event) bool {
	return (s.State == Admitted || s.State == Held) && s.File != "" && s.File != e.File
}

func standingRead(from Standing, e Event) Standing {
	switch {
	case e.File == "" && (from.State == Unknown || from.State == Refused):
		return Standing{State: Shown, File: from.File, Facts: from.Facts}
	case e.File == "", from.restsElsewhere(e):
		return from
	}
	return Standing{State: Shown, File: e.File, Facts: e.Facts}
}

func standingListed(from Standing) Standing {
	switch from.State {
	case Shown:
		from.Listed = true
		return from
	case Admitted:
		if from.File != "" || from.ByEdge {
			return from
		}
	case Held, Refused:
		if from.File != "" {
			return from
		}
	case Unknown:
	}
	return Standing{State: Shown, Listed: true}
}

func standingAdmitted(from Standing, e Event) Standing {
	if e.File == "" && from.File != "" && (from.State == Held || from.State == Refused) {
		return from
	}
	to := Standing{State: Admitted, Through: e.Through, File: e.File, Facts: e.Facts, ByEdge: e.ByEdge, Listed: e.File == ""}
	if e.File == "" && from.File != "" {
		to.File, to.Facts = from.File, from.Facts // what is known of a file stays known
	}
	if from.State == Admitted {
		to.Listed, to.ByEdge = to.Listed || from.Listed, from.ByEdge && e.ByEdge
		if from.Through != "" {
			to.Through = from.Through
		}
	}
	return to
}
