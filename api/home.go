package api

import "time"

// KeptHome is a home of the caller's, who is the user at the socket's other end: GET
// /v1/homes, and DELETE /v1/homes/{name}, which removes it.
type KeptHome struct {
	Name    string    `json:"name"`
	Keeps   []string  `json:"keeps"`             // paths below the home directory
	Bytes   int64     `json:"bytes"`             // on the disk
	Used    time.Time `json:"used"`              // when a sandbox last began with it
	Sandbox string    `json:"sandbox,omitempty"` // that has it now
}
