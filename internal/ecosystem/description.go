package ecosystem

import "io"

// Content is a file's bytes.
type Content interface {
	io.ReaderAt
	Size() int64
}

// Description is what a release's metadata says.
type Description struct {
	Name         string // canonical
	Version      string // canonical
	Requirements []Requirement
}

// Requirement is one requirement of a release. Conditions (markers, extras)
// are not evaluated: that a release may require something is the fact.
type Requirement struct {
	Name      string // canonical
	Specifier string // in the ecosystem's own syntax; "" is any
	// Direct tells that it names a URL or a repository instead of a version:
	// something that no gateway serves.
	Direct bool
}
