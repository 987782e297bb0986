// Package pkgref names packages: an ecosystem, a canonical name and a version.
// Two spellings of one package have one Ref, so every decision, cache key and record
// agrees. Each ecosystem is one file with a family, and families is the list.
//
// The canonical name is the one spelling by the registry's own rule (PEP 503 for Python). A version
// is canonical too where the ecosystem has a canonical form, else verbatim.
package pkgref

import "cmp"

// Ecosystem is the name that policy documents use for a family of packages.
type Ecosystem string

// Ref is a package, or with Version a release of it. Name is canonical: make
// one with New, which refuses what is not.
type Ref struct {
	Ecosystem Ecosystem `json:"ecosystem"`
	Name      string    `json:"name"`
	Version   string    `json:"version,omitempty"`
}

// String is "python requests 2.31.0", or without a version "python requests".
func (r Ref) String() string {
	s := string(r.Ecosystem) + " " + r.Name
	if r.Version != "" {
		s += " " + r.Version
	}
	return s
}

// Project is the package, without a version.
func (r Ref) Project() Ref {
	r.Version = ""
	return r
}

// CompareSpelled orders by what is written, so that lists have one order. It is not the
// order of versions.
func (r Ref) CompareSpelled(other Ref) int {
	return cmp.Or(cmp.Compare(r.Ecosystem, other.Ecosystem), cmp.Compare(r.Name, other.Name), cmp.Compare(r.Version, other.Version))
}
