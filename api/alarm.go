package api

import (
	"time"
)

// Alarm is a record that somebody has to look at: bytes that are not what they must be, a secret
// that was about to leave, or a package on a disk that nobody served.
type Alarm struct {
	Seq     uint64    `json:"seq"` // its number; for a token, a position
	Time    time.Time `json:"time"`
	Sandbox string    `json:"sandbox,omitempty"` // not there: it is about releases that the run was served before
	Package Ref       `json:"package,omitzero"`
	File    string    `json:"file,omitempty"`
	Name    string    `json:"name,omitempty"` // of a host, or of what was found
	Outcome string    `json:"outcome"`
	Rule    string    `json:"rule"`
	Reason  string    `json:"reason"`
	Count   int       `json:"count"`
}

// Alarms is GET /v1/alarms: what alarms a run has had since a record, oldest first. The query is
// run or sandbox (with neither of them it is the last run) and after: the Next of an answer
// before. Without after it tells none, and where those begin that are still to come.
type Alarms struct {
	Run    string  `json:"run"`
	Alarms []Alarm `json:"alarms"`
	Total  int     `json:"total"` // with those past the first 100
	Next   string  `json:"next"`
}
