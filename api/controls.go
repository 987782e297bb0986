package api

// Controls is GET /v1/sandboxes/{id}/controls: what a probe came to that tried to get past
// each control of a sandbox, in a twin that was made for it.
type Controls struct {
	Sandbox  string    `json:"sandbox"`
	Run      string    `json:"run"`
	Twin     string    `json:"twin"`     // the id of the twin, which is gone
	TwinRun  string    `json:"twin_run"` // its run in the record
	Template string    `json:"template"`
	Engine   string    `json:"engine"`
	Policy   string    `json:"policy"`      // digest
	Holds    bool      `json:"holds"`       // no control failed
	Limits   Limits    `json:"limits"`      // of the sandbox
	TwinHas  Limits    `json:"twin_limits"` // of the twin, at most those
	Controls []Control `json:"controls"`
}

// Limits are a sandbox's.
type Limits struct {
	MemoryBytes int64 `json:"memory_bytes"`
	DiskBytes   int64 `json:"disk_bytes"`
	Pids        int   `json:"pids"`
}

// Control is one thing that isolates or limits a sandbox.
type Control struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"` // "proved", "failed", "not-applicable"
	Tried   string `json:"tried"`
	Says    string `json:"says"` // what came of it; in part the probe's own words
}
