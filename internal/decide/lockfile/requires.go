package lockfile

import (
	"iter"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Requirement is what a lockfile says that one of its releases requires. A
// client that installs from a lockfile reads no metadata, so this is how an
// allowed package brings what it needs. A requirement that can't be read is left out: then nothing is let in through it.
type Requirement struct {
	Name      string // canonical
	Specifier string // in the ecosystem's own syntax; "" is any
}

// Requires lists the releases of the set that have requirements, and these.
func (s *Set) Requires() iter.Seq2[pkgref.Ref, []Requirement] {
	return func(yield func(pkgref.Ref, []Requirement) bool) {
		for _, f := range s.files {
			for ref, reqs := range f.Requires {
				if !yield(ref, reqs) {
					return
				}
			}
		}
	}
}

// require notes a requirement of a release.
func (b *builder) require(parent pkgref.Ref, name, specifier string) {
	canonical, err := pkgref.CanonicalName(b.ecosystem, name)
	if err == nil && canonical != parent.Name {
		b.requires[parent] = append(b.requires[parent], Requirement{canonical, specifier})
	}
}

// requireRanges reads a mapping of names to npm's ranges, such as an entry of
// package-lock.json has. An alias requires what it stands for.
func (b *builder) requireRanges(parent pkgref.Ref, entry *value, keys ...string) {
	for _, key := range keys {
		ranges := entry.getItem(key)
		if ranges == nil || ranges.kind != mapping {
			continue
		}
		for i, name := range ranges.keys {
			of, specifier := pkgref.Alias(b.ecosystem, name, ranges.values[i].text)
			b.require(parent, of, specifier)
		}
	}
}

// requirePins reads a mapping of names to the releases that pnpm resolved them
// to: "1.2.3", with peers in parentheses behind it, or "name@1.2.3" (in version 6
// "/name@1.2.3") for an alias.
func (b *builder) requirePins(parent pkgref.Ref, entry *value) {
	for _, key := range []string{"dependencies", "optionalDependencies"} {
		pins := entry.getItem(key)
		if pins == nil || pins.kind != mapping {
			continue
		}
		for i, name := range pins.keys {
			version, _, _ := strings.Cut(pins.values[i].text, "(")
			if at := strings.LastIndexByte(version, '@'); at > 0 {
				name, version = strings.TrimPrefix(version[:at], "/"), version[at+1:]
			}
			if _, err := pkgref.CanonicalVersion(b.ecosystem, version); err == nil {
				b.require(parent, name, version)
			}
		}
	}
}

// requireNames reads lists of tables with a name and perhaps a version, as
// uv.lock and pylock.toml have.
func (b *builder) requireNames(parent pkgref.Ref, names *value) {
	if names == nil || names.kind != list {
		return
	}
	for _, d := range names.values {
		if d.kind != mapping {
			continue
		}
		name, version := d.getItem("name"), d.getItem("version")
		switch {
		case name == nil || name.kind != textKind:
		case version != nil && version.kind == textKind:
			b.require(parent, name.text, "=="+version.text)
		default:
			b.require(parent, name.text, "")
		}
	}
}
