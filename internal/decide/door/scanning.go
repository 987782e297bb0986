package door

import (
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
)

// ScansAsk asks what is looked for in a sandbox's requests.
type ScansAsk struct {
	Sandbox string `json:"sandbox"`
}

// ScansAnswer is what is looked for, and what becomes of it.
type ScansAnswer struct {
	Plan dlp.Plan `json:"plan"`
	// Placeholders are all that the sandbox has. They look like secrets, and are none.
	Placeholders []string `json:"placeholders,omitempty"`
}

// MaxFindings is how many findings are told of at a time at most.
const MaxFindings = 64

// FoundAsk tells what was found in a request, before it goes any further.
type FoundAsk struct {
	HostPort
	Request  exchange.Request `json:"request"` // without what was found in its path
	Where    string           `json:"where"`   // in the request
	Findings []Finding        `json:"findings,omitempty"`
	// Unseen is why the body can't be looked into; "": it can. Refused tells that the
	// request is not sent for that.
	Unseen  string `json:"unseen,omitempty"`
	Refused bool   `json:"refused,omitempty"`
}

// Finding is dlp.Finding on the wire.
type Finding struct {
	Rule    string      `json:"rule"`
	Class   dlp.Class   `json:"class"`
	Outcome dlp.Outcome `json:"outcome"`
	At      int64       `json:"at"`
	Length  int         `json:"length"`
	Sum     []byte      `json:"sum"`
	Late    bool        `json:"late,omitempty"`
}

// FoundAnswer is of the last of the findings.
type FoundAnswer struct {
	RequestID string `json:"request_id,omitempty"`
	// Enough tells that the sandbox has as many on record as it may: telling of more that
	// are only reported or redacted changes nothing.
	Enough bool `json:"enough,omitempty"`
}

// RuleScanning is the rule of what is found in requests.
const RuleScanning = "credentials.secret_scanning.requests"
