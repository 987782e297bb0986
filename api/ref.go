package api

// Ref names a package, or with Version a release of it.
type Ref struct {
	Ecosystem string `json:"ecosystem"` // as policy documents name it: python, node, go
	Name      string `json:"name"`      // as the ecosystem compares names
	Version   string `json:"version,omitempty"`
}

// String returns "python requests 2.31.0", or without a version "python requests".
func (r Ref) String() string {
	s := r.Ecosystem + " " + r.Name
	if r.Version != "" {
		s += " " + r.Version
	}
	return s
}
