package api

import "time"

// Clock is what time it is: GET /v1/clock. POST /v1/clock/accept answers it as it was
// before.
type Clock struct {
	Time         time.Time `json:"time"`          // that ages and ends are judged by
	Host         time.Time `json:"host"`          // what the host's clock says
	AheadSeconds int64     `json:"ahead_seconds"` // how far the host's is ahead, negative if it is behind
	Jumped       bool      `json:"jumped"`        // the host's clock has jumped, and nobody has said that it is right
}
