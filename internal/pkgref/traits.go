package pkgref

// Traits are what differs between ecosystems beside their names and versions. Who judges,
// imports or explains asks for them, and names no ecosystem. The zero value is that of what
// is none.
type Traits struct {
	// OSV is the ecosystem's name in the OSV format, and Table its letter in tables of
	// facts: neither may change.
	OSV   string
	Table byte

	// VersionLetter is what versions begin with here, and in advisories do not.
	VersionLetter string

	// SpecifierExample is a range as people write it.
	SpecifierExample string

	// Extras tells that a name may have extras behind it, "requests[socks]", and Epochs that
	// a version may have an epoch in front, "1!2.0".
	Extras bool
	Epochs bool

	// XRanges tells that "1.2.x" is a range, and "==" is not how one is written.
	XRanges bool

	// SeveralVersions tells that one tree can have a package in several versions.
	SeveralVersions bool

	// Backtracks tells that resolvers go back to older releases than the highest that they
	// were shown.
	Backtracks bool

	// NamesArePaths tells that one name can lie below another, "a.example/m/v2".
	NamesArePaths bool

	// RequirementsOnPages tells that a project's page says what its releases require.
	RequirementsOnPages bool

	// ProjectsHaveVersions tells that a project that somebody writes says its version itself.
	ProjectsHaveVersions bool
}

// Traits are the ecosystem's own.
func (e Ecosystem) Traits() Traits {
	switch e {
	case Python:
		return Traits{OSV: "PyPI", Table: 'p', SpecifierExample: ">=2.31,<3", Extras: true, Epochs: true, Backtracks: true}
	case Node:
		return Traits{
			OSV: "npm", Table: 'n', SpecifierExample: "^1.2.3", XRanges: true, SeveralVersions: true,
			RequirementsOnPages: true, ProjectsHaveVersions: true,
		}
	case Go:
		return Traits{OSV: "Go", Table: 'g', SpecifierExample: ">=v1.2.3,<v2", VersionLetter: "v", NamesArePaths: true}
	case Rust:
		return Traits{OSV: "crates.io", Table: 'r', SpecifierExample: ">=2.31,<3", SeveralVersions: true}
	}
	return Traits{}
}
