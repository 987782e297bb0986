package api

// Secret is one that the daemon's configuration declares: GET /v1/secrets. Nothing of what
// it is, and nothing of where it comes from, is told.
type Secret struct {
	Name  string   `json:"name"`  // by which policies name it
	Hosts []string `json:"hosts"` // that may get it: a name, or "*." and one for all below it
}
