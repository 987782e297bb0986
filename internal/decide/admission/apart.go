//go:build !leaky

package admission

import "github.com/cofferdam-dev/cofferdam/internal/decide/policy"

// pageShareKey says whose pages of a name a run is not told of, by how soon or with which
// times one comes: of a name that it may not have, those of all other sandboxes;
// where ages count from when a file was seen first, those of other tokens.
func pageShareKey(t *tenant, name policy.Decision) string {
	own := "sandbox " + t.run.Sandbox
	if !name.Shown() {
		return own
	}
	if t.policy().AgesFromFirstSeen() && t.run.Token != "" {
		return "token " + t.run.Token
	}
	return ""
}
