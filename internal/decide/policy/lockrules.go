package policy

// LockRules is what a document says of lockfiles.
type LockRules struct {
	// Given tells that the document speaks of lockfiles at all.
	Given bool
	// Files are paths, absolute or relative to the document's directory. With
	// none of them a run must bring its own (--lockfile) or is refused.
	Files []string
	Mode  LockMode // LockFrozen if the document does not say
	Trust bool
}
