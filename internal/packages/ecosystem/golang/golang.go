// Package golang is the Go module proxy protocol: the list of a module's
// versions, the .info and .mod of a version, module zips, and the checksum
// database below sumdb/, whose log this package is also a witness to. Nothing
// here fetches, stores or decides.
//
// A module is a project, by its path. Its page is the list, one version per line. A query is a
// branch, a commit or "latest", which a proxy's .info turns into a version. The checksum database
// is a log of records, each with the digests of one release; a tile is a piece of the log's hashes,
// and the head is its signed size and hash. A digest of the database ("h1:") is over the names and
// contents of a zip's files rather than over its bytes.
//
// What the gateway does with routes that are the database's: Route.File is the
// path below sumdb/, beginning with the database's name and a slash. PassAsk
// relays any name, so whoever serves the route must compare it with the name in
// the verifier of the database that the upstream has. A lookup has Project and
// Version, to be judged before anybody hears them.
//
// How a page shows what a run may not have, as the go command was seen to need
// it (docs/ecosystems.md): where some version is allowed, the others are not
// listed, so that a query takes an allowed one; a pinned one is asked for all
// the same, and its refusal is printed. Where none is, all are listed, since of
// an empty list the go command prints no reason. "@latest", which it asks for
// where the list is empty, is the upstream's answer, read like a query.
package golang

import (
	"golang.org/x/mod/module"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// toolchain is the module whose versions are Go toolchains.
const toolchain = "golang.org/toolchain"

// Protocol implements ecosystem.Protocol and its optional abilities Inspector,
// Addresser, Attacher, Witness, ToolchainNamer and PassThrough.
type Protocol struct{}

var (
	_ ecosystem.Protocol       = Protocol{}
	_ ecosystem.Inspector      = Protocol{}
	_ ecosystem.Addresser      = Protocol{}
	_ ecosystem.Attacher       = Protocol{}
	_ ecosystem.Requirer       = Protocol{}
	_ ecosystem.Witness        = Protocol{}
	_ ecosystem.ToolchainNamer = Protocol{}
	_ ecosystem.PassThrough    = Protocol{}
)

// New returns the protocol.
func New() Protocol { return Protocol{} }

// Ecosystem is pkgref.Go.
func (Protocol) Ecosystem() pkgref.Ecosystem { return pkgref.Go }

// Toolchain tells the module of Go's toolchains.
func (Protocol) Toolchain(project string) bool { return project == toolchain }

// isRelease tells whether a module can have a version, both canonical.
func isRelease(project, version string) bool {
	ref, err := pkgref.New(pkgref.Go, project, version)
	return err == nil && version != "" && ref.Name == project && ref.Version == version
}

// escapePath spells a module's path for URLs, a capital as "!" and its lower
// case. "" only for what is no module's path.
func escapePath(project string) string {
	escaped, err := module.EscapePath(project)
	if err != nil {
		return ""
	}
	return escaped
}

// escapeVersion spells a version or query for URLs. "" only for what is neither.
func escapeVersion(version string) string {
	escaped, err := module.EscapeVersion(version)
	if err != nil {
		return ""
	}
	return escaped
}

// maxQuoted bounds others' text in a sentence.
const maxQuoted = 80
