package pkgref

// Traits are what differs between ecosystems beside their names and versions. Code that judges,
// imports or explains asks for them, and names no ecosystem. The zero value is that of what is
// none.
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

	// OlderOnPages tells that a project's page also shows what is older than what is
	// required, to clients that know their versions from elsewhere.
	OlderOnPages bool

	// Archive is what the names of files end in that are installed as they are.
	Archive string

	// Sources tells that a release has source distributions beside the wheels that are
	// built of them; elsewhere all files are of one kind.
	Sources bool

	// Scripts tells that packages may run something when they are installed.
	Scripts bool

	// Between is what stands between a name and a version where somebody asks for both:
	// "left-pad@1.2.3". "": nothing does, for what follows begins with an operator.
	Between string

	// AsksVersions tells that behind Between stands one version and never a range.
	AsksVersions bool
}

// Traits are the ecosystem's own.
func (e Ecosystem) Traits() Traits {
	f := familyOf(e)
	if f == nil {
		return Traits{}
	}
	return f.traits()
}
