package api

import "time"

// Lifetime says when a sandbox ends by itself: in CreateSandbox and ForkSandbox,
// and as the body of PUT /v1/sandboxes/{id}/lifetime, which counts anew from then
// on. Time in which the sandbox is frozen, paused, or waits for a person does not
// count. The zero Lifetime is no end.
type Lifetime struct {
	TTLSeconds  int64  `json:"ttl_seconds,omitempty"`  // 0: no end
	IdleSeconds int64  `json:"idle_seconds,omitempty"` // without a command, a client or a file operation; 0: no end
	AtEnd       string `json:"at_end,omitempty"`       // destroy, pause, pause-files (without memory); "" is destroy
	// LeaseSeconds is how long it lasts without any client attached to a command of it, though
	// commands run; then it is destroyed. Between commands it is five minutes at least. 0: they
	// run on, or what is said anew leaves the lease that there is, as a fork has its source's; -1: none.
	// Time in which it waits for a person, or is paused, does not count; if it does so
	// when the lease would be over, the lease is a day from then on.
	LeaseSeconds int64 `json:"lease_seconds,omitempty"` // at least 5
}

// SandboxPage is GET /v1/sandboxes (query: state, run, template, snapshot, and
// label=KEY=VALUE, each any number of times; limit, at most 1000; after, the Next
// of the page before), oldest first.
type SandboxPage struct {
	Sandboxes []Sandbox `json:"sandboxes"`
	Next      string    `json:"next,omitempty"` // "": this is the last page
}

// MakeSnapshot is the body of POST /v1/sandboxes/{id}/snapshots.
type MakeSnapshot struct {
	// Name is optional; a newer snapshot of the same owner and name takes it over.
	Name     string `json:"name,omitempty"`
	Contents string `json:"contents,omitempty"` // memory (with files), files; "" is memory
}

// Snapshot is a copy of a sandbox that others can be made from
// (CreateSandbox.Snapshot). It never changes.
type Snapshot struct {
	ID         string    `json:"id"`
	Name       string    `json:"name,omitempty"`
	Digest     string    `json:"digest"`
	Contents   string    `json:"contents"` // memory, files
	Created    time.Time `json:"created"`
	Bytes      int64     `json:"bytes"`
	Token      string    `json:"token,omitempty"` // whose it is; "": the host's
	Sandbox    string    `json:"sandbox"`         // that it is a copy of
	Run        string    `json:"run"`
	Template   string    `json:"template"`
	Engine     string    `json:"engine"`
	Policy     string    `json:"policy_digest"`
	Compressed bool      `json:"compressed,omitempty"` // it takes longer to start from
	// System are the packages of the distribution that a build brought, beyond the template's.
	System []TemplatePackage `json:"system,omitempty"`
}

// ForkSandbox is the body of POST /v1/sandboxes/{id}/fork.
type ForkSandbox struct {
	Count int `json:"count,omitempty"` // 0 is 1
	// Lifetime is each copy's. Without ttl_seconds, idle_seconds and at_end it is what the source was given last, from now
	// on. Without lease_seconds it has the source's lease, if there is one, of five minutes at least.
	Lifetime Lifetime `json:"lifetime,omitzero"`
}

// Forks is its answer: one entry for each copy that was asked for.
type Forks struct {
	Forks []Fork `json:"forks"`
}

// Fork is one copy, or why there is none.
type Fork struct {
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	Error   *Problem `json:"error,omitempty"`
}

// Usage is what a sandbox has and uses: GET /v1/sandboxes/{id}/usage.
type Usage struct {
	Time        time.Time `json:"time"`
	CPUCount    float64   `json:"cpu_count"`
	CPUNanos    int64     `json:"cpu_nanos"`   // since it was started
	CPUPercent  float64   `json:"cpu_percent"` // of one core, since the last look; 0 at the first
	MemoryBytes int64     `json:"memory_bytes"`
	MemoryLimit int64     `json:"memory_limit"`
	DiskBytes   int64     `json:"disk_bytes"`
	DiskLimit   int64     `json:"disk_limit"`
	Processes   int       `json:"processes"`
	MemoryKills int64     `json:"memory_kills"` // processes that were killed because the memory was full
}

// Event is one line of GET /v1/events (JSON lines; query: after, the last event's number; sandbox):
// a change of a sandbox's state. The kept events come first, then new ones as they happen, until
// the client goes away.
type Event struct {
	Seq     int64     `json:"seq"` // grows by one, over restarts of the daemon too; for a token, a number of its own to give back as after, which tells no order
	Time    time.Time `json:"time"`
	Sandbox string    `json:"sandbox"`
	Run     string    `json:"run"`
	Token   string    `json:"token,omitempty"` // whose sandbox it is
	From    string    `json:"from,omitempty"`  // states, as in Sandbox.State
	To      string    `json:"to"`
	Reason  string    `json:"reason,omitempty"`
}
