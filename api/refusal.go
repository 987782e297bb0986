package api

import (
	"time"
)

// Refusal is one thing that a sandbox was refused: what `cofferdam why` tells, inside
// and on the host.
type Refusal struct {
	Time      time.Time `json:"time"`
	Run       string    `json:"run"`
	Sandbox   string    `json:"sandbox"`
	Package   Ref       `json:"package,omitzero"`
	File      string    `json:"file,omitempty"`
	What      string    `json:"what"`           // package, index, name, command, tool
	Name      string    `json:"name,omitempty"` // a name that does not resolve
	Outcome   string    `json:"outcome"`
	Rule      string    `json:"rule"`
	Reason    string    `json:"reason"`
	Suggest   string    `json:"suggest,omitempty"` // lines of a policy that would allow it
	RequestID string    `json:"request_id"`
	Count     int       `json:"count"`
	// Alarm tells that it is more than a refusal: somebody's bytes are not what a
	// lockfile or an advisory says they must (not) be.
	Alarm bool `json:"alarm,omitempty"`
	// Approval is the request in the queue that it waits for.
	Approval string `json:"approval,omitempty"`
	// Cause tells, where that was asked for, that it may be why something failed: of the others
	// that is less sure.
	Cause bool `json:"cause,omitempty"`
}

// Refusals is GET /v1/refusals: what a run was refused, alarms first, then in the
// order of time. The query is run, sandbox and request (the id that the client was
// shown, or one of the approval queue); with none of them it is the last run. With
// causes=true those that may be why something failed are marked, and come before the others.
type Refusals struct {
	Run      string    `json:"run"`
	Refusals []Refusal `json:"refusals"`
	// Ended, with causes=true, is the last command of the run that did not end well, and how.
	Ended string `json:"ended,omitempty"`
}
