package archive

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// checkPath refuses a member's path unless every unpacker puts it in the same
// place, inside the folder that it unpacks to. n counts the members from 1 and
// stands for the path in messages, since a path is the publisher's text.
func checkPath(path string, n int, limits Limits) error {
	switch {
	case path == "":
		return fault.Invalid("the archive's member %d has no path", n)
	case len(path) > limits.Path:
		return fault.Invalid("the path of the archive's member %d has more than %d bytes", n, limits.Path)
	case !utf8.ValidString(path):
		return fault.Invalid("the path of the archive's member %d is not UTF-8", n)
	case strings.ContainsRune(path, '\\'):
		return fault.Invalid("the path of the archive's member %d has a backslash", n)
	case strings.ContainsFunc(path, breaks):
		return fault.Invalid("the path of the archive's member %d has a control character", n)
	case path[0] == '/':
		return fault.Invalid("the path of the archive's member %d is absolute", n)
	}
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "..":
			return fault.Invalid("the path of the archive's member %d leaves the archive", n)
		case part == "" || part == ".":
			return fault.Invalid("the path of the archive's member %d is not clean", n)
		case len(part) > maxName:
			return fault.Invalid("the path of the archive's member %d has a name of more than %d bytes, which no file system takes", n, maxName)
		case driven(part):
			return fault.Invalid("the path of the archive's member %d has a drive letter, which some unpackers cut off", n)
		}
	}
	return nil
}

// maxName bounds one name in a path: unpackers leave out what they can't create.
const maxName = 255

// breaks tells whether a rune is a control character or ends a line for some
// readers of text.
func breaks(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// driven tells whether a name begins like a Windows path.
func driven(name string) bool {
	return len(name) > 1 && name[1] == ':' && ('a' <= name[0]|0x20 && name[0]|0x20 <= 'z')
}

// archivePlace is what is at a path.
type archivePlace struct {
	path string // as written, for the comparison with other spellings
	kind placeKind
}

type placeKind byte

const (
	placeFolder placeKind = iota // a member, or implied by what is below it
	placeFile
	placeLink
)

// places are the paths of an archive so far, by their folded spelling.
type places map[string]archivePlace

// addPlace refuses a path that is there already, in this or another spelling, and
// one below something that is no folder. A folder may be there twice.
func (ps places) addPlace(path string, kind placeKind, n int) error {
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		if err := ps.putPlace(path[:i], placeFolder, n); err != nil {
			return err
		}
	}
	return ps.putPlace(path, kind, n)
}

func (ps places) putPlace(path string, kind placeKind, n int) error {
	key := foldPath(path)
	old, taken := ps[key]
	switch {
	case !taken:
		ps[key] = archivePlace{path, kind}
		return nil
	case old.path != path:
		return fault.Invalid("the path of the archive's member %d differs from another only in case", n)
	case old.kind == placeFolder && kind == placeFolder:
		return nil
	case old.kind == placeFolder || kind == placeFolder:
		return fault.Invalid("the archive's member %d is below a file, or a file where a folder is", n)
	}
	return fault.Invalid("the archive has the path of its member %d twice", n)
}

// hasFile tells whether path is a file that came before.
func (ps places) hasFile(path string) bool {
	p, ok := ps[foldPath(path)]
	return ok && p.path == path && p.kind == placeFile
}

// foldPath maps the spellings that a case-insensitive file system takes for one to
// one string.
func foldPath(path string) string {
	return strings.Map(foldRune, path)
}

func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return foldASCII(least)
}

// foldASCII folds the few letters outside ASCII whose fold is in it (the
// Kelvin sign is a k).
func foldASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}
