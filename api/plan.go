package api

// Plan is what an install would bring: the answer of GET /v1/runs/{run}/plan
// for a run in plan mode (CreateSandbox.Plan), by then whole.
type Plan struct {
	Run      string        `json:"run"`
	Releases []PlanRelease `json:"releases"`
}

// PlanRelease is one release of the tree.
type PlanRelease struct {
	Ecosystem string   `json:"ecosystem"`
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	WantedBy  []string `json:"wanted_by,omitempty"` // "rich 13.7.1 requires pygments >=2.13"; none: it was asked for
	File      string   `json:"file,omitempty"`
	Kind      string   `json:"kind,omitempty"` // wheel, sdist, package
	Digest    string   `json:"digest,omitempty"`
	Size      int64    `json:"size,omitempty"`
	Published string   `json:"published,omitempty"` // RFC 3339
	Scripts   bool     `json:"scripts,omitempty"`
	Effect    string   `json:"effect"` // allow, hold, deny
	Rule      string   `json:"rule"`
	Reason    string   `json:"reason"`
	Approval  string   `json:"approval,omitempty"` // the request in the queue
}
