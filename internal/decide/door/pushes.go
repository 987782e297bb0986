package door

import "github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"

// PushAsk asks for a push of which a person is asked (policy.RequestTerms.HeldPush).
type PushAsk struct {
	Sandbox string         `json:"sandbox"`
	Name    string         `json:"name"`
	Port    int            `json:"port"`
	Path    string         `json:"path"` // of the request that carries it
	Change  gitwire.Change `json:"change"`
	Size    int64          `json:"size,omitempty"` // of the request's body in bytes; 0: not known
	// Wait tells that a push that waits is filed, and waited for. Without it the answer is
	// what is known now.
	Wait bool `json:"wait,omitempty"`
}

// RuleGit is of requests of git's that the policy does not have, or that can't be read.
const RuleGit = "network.git"
