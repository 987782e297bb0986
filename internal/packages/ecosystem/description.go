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

// Requirement is one requirement of a release. Conditions of the system that it is
// installed on are not evaluated: that a release may require something is the fact.
type Requirement struct {
	Name      string // canonical
	Specifier string // in the ecosystem's own syntax; "" is any
	// Direct tells that it names a URL or a repository instead of a version:
	// something that no gateway serves. Name may then be "".
	Direct bool
	// Under are the release's extras (Python's), canonical and with commas between, of
	// which each alone brings this requirement, the one that brings least first; "": it
	// counts for everybody. Asks are those that it asks of Name.
	Under, Asks string
	// Optional tells that clients install the release without it where it can't be had.
	Optional bool
}

// Inspection is what is in a file.
type Inspection struct {
	Description
	// Scripts names what runs when the file is installed, implicit forms
	// included ("postinstall", "binding.gyp"): fixed words, never the
	// publisher's text. Empty: nothing runs.
	Scripts []string
	// Bundled are other packages that the file brings inside itself, canonical;
	// Version may be "". At most MaxBundled are listed.
	Bundled []Bundled
	// Findings are peculiarities that do not refuse the file but are recorded:
	// one fixed sentence each.
	Findings []string
	// Contents is the digest of what the file is once it is unpacked (package digest), for
	// protocols whose clients change nothing of it; "" for others.
	Contents string
	// Inside is what it brings, for a person, and Said what its publisher says in it.
	Inside Inside
	Said   Publication
	// Sidecar is "sha256:<hex>" of the sidecar inside, for protocols that have
	// one; the gateway refuses a file whose index offers another.
	Sidecar string
}

// Bundled is a package inside another's file.
type Bundled struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// MaxBundled bounds what is listed of the packages in one file.
const MaxBundled = 500
