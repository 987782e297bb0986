// Package advisory keeps facts about packages that were imported from files:
// which releases are known malware, which have known vulnerabilities, which packages are popular. No service is
// called; an operator imports a database when there is a new one.
//
// OSV records tell of malware (MAL-) or of a vulnerability; withdrawn ones are ignored. A name is
// burnt if every version of it is malicious for ever. A popularity list names packages that many
// people use, and a lookalike is a name near to one of them. The state of all of this that imports
// have made at one time is called a generation.
package advisory

import (
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// Facts are what is known of a package.
type Facts struct {
	Malware   []policy.Malware
	Popular   bool
	Lookalike *policy.Lookalike // nil for a popular package, and where nothing is near
}

// Vulnerabilities are what is known of a package's vulnerabilities.
type Vulnerabilities struct {
	Known []policy.Vulnerability
	// Assessed tells that vulnerabilities of the package's ecosystem were imported at all, and
	// Imported when: the oldest of those imports.
	Assessed bool
	Imported time.Time
}

// Source answers what is known. It is safe for concurrent use and fast enough
// for every request.
type Source interface {
	// Facts of a package by its canonical name.
	Facts(pkg pkgref.Ref) (Facts, error)
	// Vulnerabilities of a package by its canonical name.
	Vulnerabilities(pkg pkgref.Ref) (Vulnerabilities, error)
	// Generation names the state: equal generations give equal facts.
	Generation() string
}

// Coverage is the optional ability of a Source to tell what it knows nothing of.
type Coverage interface {
	// CoversMalware tells whether advisories about packages of an ecosystem were imported.
	CoversMalware(of pkgref.Ecosystem) bool
}
