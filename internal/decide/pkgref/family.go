package pkgref

import (
	"path"
	"strings"
)

// family is what one ecosystem says of its packages. Each has a file of its own; it has
// no state, and what embeds ordinary says only what differs.
type family interface {
	ecosystem() Ecosystem
	traits() Traits
	grammar() grammar
	lockfiles() []Lockfile

	// words are what people call it besides: by its clients and registries.
	words() []string
	// name and version give the one spelling of what somebody wrote; false: no package
	// can have it.
	name(written string) (canonical string, ok bool)
	version(written string) (canonical string, ok bool)
	// fits tells whether a package can have a version. Both are canonical.
	fits(name, version string) bool
	// alias gives the package and the range that a dependency really is of; see Alias.
	alias(name, spec string) (of, rang string)
}

// families is the list of ecosystems, in the order of documentation. A new one is its file
// and one line here.
func families() []family {
	return []family{
		pythonFamily{},
		nodeFamily{},
		goFamily{},
		rustFamily{},
	}
}

// familyOf is nil for what is no ecosystem.
func familyOf(e Ecosystem) family {
	for _, f := range families() {
		if f.ecosystem() == e {
			return f
		}
	}
	return nil
}

// ordinary is what holds of an ecosystem that says nothing else.
type ordinary struct{}

func (ordinary) lockfiles() []Lockfile                     { return nil }
func (ordinary) fits(string, string) bool                  { return true }
func (ordinary) alias(name, spec string) (of, rang string) { return name, spec }

// Alias gives the package that a dependency really is of, and its range: in some
// ecosystems a project can have a package under another name. An alias of what is no
// package has the name "".
func Alias(e Ecosystem, name, spec string) (of, rang string) {
	f := familyOf(e)
	if f == nil {
		return name, spec
	}
	return f.alias(name, spec)
}

// Lockfile is a name by which a lockfile's format is told.
type Lockfile struct {
	Name  string // of the file; "*" stands for anything
	Words string // where it is listed for people; "": it is another spelling of one that is
}

// Lockfiles are the names of an ecosystem's lockfiles.
func (e Ecosystem) Lockfiles() []Lockfile {
	f := familyOf(e)
	if f == nil {
		return nil
	}
	return f.lockfiles()
}

// Is tells whether a file with this name, without a folder, is one.
func (l Lockfile) Is(base string) bool {
	if !strings.Contains(l.Name, "*") {
		return l.Name == base
	}
	is, err := path.Match(l.Name, base)
	return err == nil && is
}

// LockfileOf tells by a file's name, without a folder, whose lockfile it is.
func LockfileOf(base string) (Ecosystem, bool) {
	for _, f := range families() {
		for _, l := range f.lockfiles() {
			if l.Is(base) {
				return f.ecosystem(), true
			}
		}
	}
	return "", false
}

// OfFile tells by a file's name which ecosystem installs such a file as it is.
func OfFile(name string) (Ecosystem, bool) {
	for _, f := range families() {
		if archive := f.traits().Archive; archive != "" && strings.HasSuffix(name, archive) {
			return f.ecosystem(), true
		}
	}
	return "", false
}

// KnownLockfiles lists all lockfiles for people: "a.lock, b.lock and c.lock".
func KnownLockfiles() string {
	var words []string
	for _, f := range families() {
		for _, l := range f.lockfiles() {
			if l.Words != "" {
				words = append(words, l.Words)
			}
		}
	}
	return listed(words, "and")
}

// listed joins words for people: "a, b and c".
func listed(words []string, last string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}
