package policy

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/pathseg"
)

const (
	maxGlob = 500     // bytes of a path in a document
	maxPath = 8 << 10 // of one in a request
)

// pathGlob is a pattern over the segments of a path. In a segment, * is any characters. A
// segment ** is any number of segments, at its end one at least that has a name: what is below
// a place is not the place itself, nor the place with a slash behind it, which most servers
// take for the same.
type pathGlob []string

// anySegment is what only a glob has: one segment, also an empty one, which the root has.
const anySegment = "\x00"

// parsePathGlob says in a few words what is wrong, "" if nothing is.
func parsePathGlob(s string) (pathGlob, string) {
	if len(s) > maxGlob {
		return nil, "is too long"
	}
	sent, wrong := readPath(s)
	if wrong != "" {
		return nil, wrong
	}
	segments := sent.segments
	for i, segment := range segments {
		if strings.Contains(segment, "**") && segment != "**" {
			return nil, "has a ** that does not stand alone between slashes"
		}
		if i > 0 && segment == "**" && segments[i-1] == "**" {
			return nil, "has a ** behind another"
		}
	}
	if last := len(segments) - 1; segments[last] == "**" {
		return append(segments[:last:last], anySegment, "**"), ""
	}
	return segments, ""
}

// matchesSent tells whether it has a path as it is sent, and has it up to an escaped #, too. A pattern that
// has such an escape itself is then meant up to that.
func (g pathGlob) matchesSent(p sentPath) bool {
	return g.matchesPath(p.segments) && (p.before == nil || g.beforeNumber().matchesPath(p.before))
}

// beforeNumber is the pattern up to its first escaped #.
func (g pathGlob) beforeNumber() pathGlob {
	for i, segment := range g {
		if before, _, has := strings.Cut(segment, numberSign); has {
			return append(g[:i:i], before)
		}
	}
	return g
}

// matchesPath tells whether it has a path, by its segments. Where anything at its end would do, it has
// the path without the segments there that have no name, too.
func (g pathGlob) matchesPath(path []string) bool {
	if !g.matchesAsSent(path) {
		return false
	}
	named := withoutNameless(path)
	return len(named) == len(path) || !g.endsInAnything() || g.matchesAsSent(named)
}

// endsInAnything tells whether stars alone stand at its end. /** has all, also the root.
func (g pathGlob) endsInAnything() bool {
	last := g[len(g)-1]
	return last != "" && strings.Trim(last, "*") == "" && (last != "**" || len(g) > 2)
}

// withoutNameless is a path without the segments at its end that some servers drop: empty ones, and those
// of blanks, of characters that nobody sees, or of parameters alone.
func withoutNameless(path []string) []string {
	for len(path) > 0 {
		if folded, wrong := pathseg.Fold(path[len(path)-1]); wrong != "" || folded != "" {
			break
		}
		path = path[:len(path)-1]
	}
	return path
}

// matchesAsSent is matches of a path as it is. As with any pattern of stars, it is enough to give the
// last one that was met more and more.
func (g pathGlob) matchesAsSent(path []string) bool {
	at, star, from := 0, -1, 0
	for i := 0; i < len(path); {
		switch {
		case at < len(g) && g[at] == "**":
			star, from = at, i
			at++
		case at < len(g) && segmentMatches(g[at], path[i]):
			at++
			i++
		case star >= 0:
			from++
			at, i = star+1, from
		default:
			return false
		}
	}
	for at < len(g) && g[at] == "**" {
		at++
	}
	return at == len(g)
}

// segmentMatches tells whether a pattern has a segment, and has it without its parameters, too:
// servers take off what stands behind a semicolon. A pattern that has parameters itself is then meant
// without them.
func segmentMatches(pattern, segment string) bool {
	if pattern == anySegment {
		return true
	}
	if !charactersMatch(pattern, segment) {
		return false
	}
	bare := withoutParameters(segment)
	return bare == segment || charactersMatch(withoutParameters(pattern), bare)
}

// withoutParameters is a segment up to its first semicolon, written as it is or escaped.
func withoutParameters(segment string) string {
	segment, _, _ = strings.Cut(segment, ";")
	if at := strings.Index(strings.ToLower(segment), "%3b"); at >= 0 {
		segment = segment[:at]
	}
	return segment
}

func charactersMatch(pattern, segment string) bool {
	if (pattern == "") != (segment == "") {
		return false
	}
	at, star, from := 0, -1, 0
	for i := 0; i < len(segment); {
		switch {
		case at < len(pattern) && pattern[at] == '*':
			star, from = at, i
			at++
		case at < len(pattern) && pattern[at] == segment[i]:
			at++
			i++
		case star >= 0:
			from++
			at, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[at:], "*") == ""
}

// numberSign is an escaped #. Names have it (C#), and servers that decode a path before they part it take
// it for the path's end. What stands behind it is lost to them, and not read as anything else, as
// what stands behind a ? would be.
const numberSign = "%23"

// sentPath is a path of a request in the ways in which servers read it.
type sentPath struct {
	segments []string // as it is sent
	before   []string // as a server reads it that takes an escaped # for its end; nil: it has none
}

// readPath reads a path as it is sent, or says why it could be read in another way than those.
func readPath(path string) (p sentPath, wrong string) {
	if p.segments, wrong = segmentsOf(path); wrong != "" {
		return sentPath{}, wrong
	}
	if before, _, has := strings.Cut(path, numberSign); has {
		if p.before, wrong = segmentsOf(before); wrong != "" {
			return sentPath{}, wrong + " before an escaped #"
		}
	}
	return p, ""
}

// splitPath gives the segments of a path as it is sent, or says why it could be read in
// two ways: whoever answers must not find another place behind it than is judged here.
func splitPath(path string) (segments []string, wrong string) {
	if strings.Contains(path, numberSign) {
		return nil, "escapes a #, at which a server that decodes first ends the path"
	}
	return segmentsOf(path)
}

// segmentsOf is splitPath of a path that may have an escaped #.
func segmentsOf(path string) (segments []string, wrong string) {
	if !strings.HasPrefix(path, "/") {
		return nil, "does not begin with a /"
	}
	if len(path) > maxPath {
		return nil, "is too long"
	}
	for i := range len(path) {
		switch c := path[i]; {
		case c <= ' ' || c > '~' || c == '\\' || c == '?' || c == '#':
			return nil, "has a character that a path does not have"
		case c == '%':
			if wrong := escapeProblem(path[i:]); wrong != "" {
				return nil, wrong
			}
		}
	}
	segments = strings.Split(path[1:], "/")
	for i, one := range segments {
		if one == "" && i < len(segments)-1 {
			return nil, "has two slashes in a row"
		}
		as, wrong := pathseg.Fold(one)
		switch {
		case wrong != "":
			return nil, wrong
		case pathseg.Dots(as):
			return nil, "has a segment . or .., or what some servers take for one"
		}
	}
	return segments, ""
}

// escapeProblem says what is wrong with the escape that a text begins with. A letter that is a
// separator, or could become one when it is decoded once more, is never escaped.
func escapeProblem(s string) string {
	if len(s) < 3 {
		return "has a % that escapes nothing"
	}
	high, low := hexValue(s[1]), hexValue(s[2])
	if high < 0 || low < 0 {
		return "has a % that escapes nothing"
	}
	switch c := byte(high<<4 | low); {
	case c == '/' || c == '\\' || c == '.' || c == '%':
		return "escapes a slash, a backslash, a dot or a %"
	case c == '?':
		return "escapes a ?, at which a server that decodes first ends the path"
	case c < ' ' || c == 0x7f:
		return "escapes a control character"
	}
	return ""
}

func hexValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
