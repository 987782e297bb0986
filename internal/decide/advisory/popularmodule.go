package advisory

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// module is a Go module's path in parts. On a host that gives paths to people
// the owner is the first of them; a host with names of its own is its own owner.
type module struct {
	host, owner, name string
}

// shortestOwnName is the length from which a module's last name tells whose
// module it is.
const shortestOwnName = 5

func splitModule(path string) module {
	parts := strings.Split(path, "/")
	if last := parts[len(parts)-1]; len(parts) > 1 && isMajor(last) {
		parts = parts[:len(parts)-1]
	}
	switch len(parts) {
	case 1:
		return module{host: parts[0]}
	case 2:
		return module{host: parts[0], name: withoutMajor(parts[1])}
	}
	return module{host: parts[0], owner: parts[1], name: withoutMajor(parts[2])}
}

// isMajor reports a path's last element that names a major version: "v2".
func isMajor(s string) bool {
	return len(s) > 1 && s[0] == 'v' && strings.Trim(s[1:], "0123456789") == ""
}

// withoutMajor takes off the ".v3" of hosts that write it so.
func withoutMajor(s string) string {
	if i := strings.LastIndexByte(s, '.'); i > 0 && isMajor(s[i+1:]) {
		return s[:i]
	}
	return s
}

// forEverybody reports a host without owners in its paths on which everybody can have
// a name.
func (m module) forEverybody() bool { return m.owner == "" && m.host == "gopkg.in" }

func (m module) publisher() string {
	if m.forEverybody() {
		return m.host + "/" + m.name
	}
	return m.host + "/" + m.owner
}

func (p *popularity) addModule(path string, rank int32) {
	m := splitModule(path)
	p.owners[m.publisher()] = true
	key := strings.ToLower(m.name)
	p.bare[key] = append(p.bare[key], rank)
	if m.forEverybody() {
		p.bare[m.host] = append(p.bare[m.host], rank)
	}
}

// nearestModule compares paths part by part. A popular module's publisher needs
// nobody's mistakes.
func (p *popularity) nearestModule(path string) *policy.Lookalike {
	m := splitModule(path)
	if p.owners[m.publisher()] {
		return nil
	}
	best, class := "", len(p.names)
	for _, rank := range p.bare[strings.ToLower(m.name)] {
		popular := splitModule(p.names[rank])
		if c := m.nearness(popular); c < class {
			best, class = p.names[rank], c
		}
	}
	if best != "" && class < len(moduleHows()) {
		how := moduleHows()[class]
		if how != howOwner || p.tellsOwner(m.name) {
			return lookalikeOf(best, how)
		}
	}
	if !m.forEverybody() {
		return nil
	}
	for _, rank := range p.bare[m.host] {
		if how := nearWord(m.name, splitModule(p.names[rank]).name); how != "" {
			return lookalikeOf(p.names[rank], how)
		}
	}
	return nil
}

// moduleHows are the ways in which modules of one name are near, nearest first.
func moduleHows() []string { return []string{howCase, howHost, howOwnerNear, howOwner} }

// nearness is the position in moduleHows of how two modules of one name, but
// for its case, are near; its length if they are not.
func (m module) nearness(popular module) int {
	sameOwner := strings.EqualFold(m.owner, popular.owner)
	switch {
	case sameOwner && m.host == popular.host:
		return 0
	case sameOwner && m.owner != "", sameOwner && nearWord(m.host, popular.host) != "":
		return 1
	case m.host == popular.host && nearWord(m.owner, popular.owner) != "":
		return 2
	case m.host == popular.host:
		return 3
	}
	return len(moduleHows())
}

// tellsOwner reports a name that only one popular publisher has, and that is
// long enough to be one.
func (p *popularity) tellsOwner(name string) bool {
	publishers := map[string]bool{}
	for _, rank := range p.bare[strings.ToLower(name)] {
		publishers[splitModule(p.names[rank]).publisher()] = true
	}
	return len(name) >= shortestOwnName && len(publishers) == 1
}
