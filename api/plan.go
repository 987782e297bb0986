package api

// ResolvedPlan is the body of POST /v1/runs/{run}/plan, for a run in plan mode
// (CreateSandbox.Plan) whose sandbox lives: what its resolver chose. It comes
// from a guest and counts only as far as the gateway showed it in that run. The
// answer is the Plan; GET /v1/runs/{run}/plan gives the last one again.
type ResolvedPlan struct {
	Ecosystem string       `json:"ecosystem"` // python, node, go
	Releases  []PlanChoice `json:"releases" most:"20000"`
	Notes     []string     `json:"notes,omitempty"` // of who read the resolver's result
	// Request files what would wait for a person in the approval queue, as one
	// group, with Because as the reason.
	Request bool   `json:"request,omitempty"`
	Because string `json:"because,omitempty"`
}

// PlanChoice is a release that a resolver chose.
type PlanChoice struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Digests []string `json:"digests,omitempty"` // "algorithm:<hex>" or "h1:<base64>": any of its files
	File    string   `json:"file,omitempty"`    // that would be installed, where the resolver says
	// IfRead tells that it counts only if the resolver read its file in this run.
	IfRead bool `json:"if_read,omitempty"`
}

// Plan is what an install would bring, and what the run's policy says of it.
// Releases are in the order of the tree: a release follows the first one that
// wanted it, one deeper.
type Plan struct {
	Run      string        `json:"run"`
	Releases []PlanRelease `json:"releases"`
	Notes    []string      `json:"notes,omitempty"` // what the table can't say, a sentence each
}

// PlanRelease is one release of the tree. Its size, scripts and time are those of the file that
// would be installed, as the gateway knows it.
type PlanRelease struct {
	Ecosystem string   `json:"ecosystem"`
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Depth     int      `json:"depth,omitempty"`     // 0: nothing in the plan requires it
	WantedBy  []string `json:"wanted_by,omitempty"` // "rich 13.7.1 requires pygments >=2.13"; none: it was asked for
	File      string   `json:"file,omitempty"`
	Kind      string   `json:"kind,omitempty"` // wheel, sdist, built, package, ran
	Digest    string   `json:"digest,omitempty"`
	Size      int64    `json:"size,omitempty"`      // bytes; 0: unknown
	Published string   `json:"published,omitempty"` // RFC 3339
	Scripts   bool     `json:"scripts,omitempty"`   // something runs when it is installed
	// Effect is allow, hold (it would wait for a person), deny, or error: the
	// resolver names what the gateway never showed, and Reason says it.
	Effect string `json:"effect"`
	// Would is deny or hold where the policy only observes (mode: observe), and allows it for
	// no other reason.
	Would    string `json:"would,omitempty"`
	Rule     string `json:"rule,omitempty"`
	Reason   string `json:"reason"`
	Suggest  string `json:"suggest,omitempty"`  // lines of a policy that would allow it
	Approval string `json:"approval,omitempty"` // the request in the queue
	Group    string `json:"group,omitempty"`    // of that request
}
