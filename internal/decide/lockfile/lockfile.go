// Package lockfile reads lockfiles with their hashes, so that a policy can hold
// an installation to exactly the files that somebody reviewed, whatever flags
// the client is given.
//
// A digest is strong if nobody can forge it (sha256 and up, Go's h1).
//
// A lockfile is read strictly and whole: what is malformed or gives a package another
// package's file is an error with the file's name and the line, before anything runs. An entry
// that pins nothing strongly (it has no hash, or one that can't be read, or comes from a repository) refuses the name that
// it has, and the others stay pinned.
package lockfile

import (
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// Lockfile is one lockfile, read.
type Lockfile struct {
	Name      string // as given
	Digest    string // "sha256:<hex>" of its bytes
	Ecosystem pkgref.Ecosystem
	Pins      map[string][]policy.Pin // by canonical package name
	// Unpinned are entries that can be held to no file, by canonical package name. Requests for
	// these names are refused, but for the releases in Pins.
	Unpinned map[string][]policy.Unpinned
	Skipped  []Skipped // entries that no client asks a registry for, in the order of their lines
	// Requires are what its releases require, where the format says so
	// (package-lock.json, pnpm-lock.yaml, uv.lock, pylock.toml).
	Requires map[pkgref.Ref][]Requirement
	// Scripts are the canonical names of which some release runs something when it is installed, where the
	// format says so (package-lock.json, pnpm-lock.yaml of version 6), each with the first line that does.
	Scripts map[string]int
}

// Source is a lockfile's name and bytes.
type Source struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}
