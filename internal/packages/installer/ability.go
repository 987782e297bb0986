package installer

import (
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
)

// Discoverer is the optional ability of an installer whose client says which registry it
// is set up to use. Of one ecosystem's installers one has it. Its result does I/O.
type Discoverer interface {
	Discover() discover.Client
}

// ManifestReader is the optional ability of an installer whose projects name in files what
// they require directly. Of one ecosystem's installers one has it.
type ManifestReader interface {
	// Manifests are these files' formats, in the order in which they are read.
	Manifests() []manifest.Format
}

// PartReader is the optional ability of a ManifestReader whose projects name in further files, of more than one name, what a part of
// those who work on them installs: tests, documentation.
type PartReader interface {
	// PartFolders are the directories of a project that may have such files, with slashes.
	PartFolders() []string
	// PartManifest is the format of a file in one of these, by its name in the project; false: it is none of them.
	PartManifest(file string) (manifest.Format, bool)
}

// Tidier is the optional ability of a ManifestReader whose client fills a manifest from the source files. Until somebody has it do
// that, the manifest asks for less than the project needs.
type Tidier interface {
	// Tidy is that command, and TidiedManifest the manifest's name.
	Tidy() string
	TidiedManifest() string
	// IsSource tells by a file's name whether the client reads it as a source file.
	IsSource(name string) bool
	// Unrequired reads the project's manifests once. unrequired is then the first thing that a source file imports and that none of
	// them has, and its line; "" if there is none, or if it can't be said surely.
	Unrequired(manifests [][]byte) (unrequired func(source []byte) (name string, line int))
}

// RegistryNamer is the optional ability of a ManifestReader whose projects may have the client ask a registry of their own.
type RegistryNamer interface {
	// RegistryFiles are files of a project that name registries and ask for no packages; of these that are not read with a manifest.
	RegistryFiles() []manifest.Format
	// RegistrySign is found in a line of any file with variables or commands that has the client ask another registry.
	RegistrySign() manifest.Sign
}

// Keeper is the optional ability of an installer whose client installs into an environment of the sandbox's own, which ends
// with it, and not into the project's directory.
type Keeper interface {
	// KeepHint says how what a command installs can be used or kept; "" if the command installs elsewhere, or is no install.
	// line is the command as a shell reads it, and writable are the places inside at which the host's directories are
	// mounted for writing.
	KeepHint(argv []string, line string, writable []string) string
}

// ProjectReader is the optional ability of an installer whose client may read a file of the directory in which it starts
// though no word of the command names it.
type ProjectReader interface {
	// ReadsUnasked names the files that a command of the client may read so; none if it surely reads none. A command such
	// as one that prints a version may do without all of them, so a caller may hint at a file, and not count on it.
	ReadsUnasked(argv []string) []string
}

// Pinner is the optional ability of an installer whose lockfile has a line for each
// release, so that one can be put in without resolving anything.
type Pinner interface {
	// Pins tells by its name, without a folder, whether a file is such a lockfile.
	Pins(base string) bool
	// Pin puts a release with the digests of its files into the text: in the place of what
	// pins its name already, or at the end. All else stays as it is. fault.ErrInvalid: no
	// digest is of a kind that the lockfile can have.
	Pin(text []byte, release pkgref.Ref, digests []string) ([]byte, error)
}

// SourceBuilder is the optional ability of an installer whose client builds what is
// installed of a source distribution, or runs the install scripts of a package. Of one
// ecosystem's installers one has it.
type SourceBuilder interface {
	// BuildSource is the command that fetches what was published by its URL, checks its
	// sha256 (hex), builds it and puts what comes of it into a folder. It gets what the
	// build needs from the registry.
	BuildSource(url, sha256, folder string) []string
	// Complaint is the line of a failed build's output that says most; "": none is known
	// to. It is whoever wrote the source that speaks.
	Complaint(output string) string
	// BuiltSuffix ends the name of what it builds.
	BuiltSuffix() string
}
