package requests

import (
	"regexp"
	"strings"
)

// jsonKeys reads the keys of an object in JSON: there are frameworks that take one for a form. It
// reads what lenient servers read as well, keys in single quotes and in none, an equals sign for a colon, and comments:
// where these stand, strict ones read nothing at all.
type jsonKeys struct {
	framed  bool // messages have lengths before them, which may have zero bytes in them
	depth   int
	quote   byte   // by which the string ends that this is inside of; 0: inside of none
	bare    bool   // a word without quotes is read
	comment []byte // how a comment begins, and the last bytes of it, which tell where it ends
	escaped []byte // of an escape, from its backslash on
	key     key    // the last string
	was     bool   // a string has ended, and nothing came behind it
}

func (j *jsonKeys) read(p []byte) string {
	for _, c := range p {
		switch {
		case c == 0 && !j.framed: // none is in UTF-8's JSON, and some servers find out by it that it is UTF-16
			return wrongText
		case j.quote != 0:
			j.take(c)
		case len(j.comment) > 0:
			if wrong := j.pass(c); wrong != "" {
				return wrong
			}
		case c == '"' || c == '\'':
			j.quote, j.was, j.bare = c, false, false
			j.key.ends()
		case c == '/':
			j.comment = append(j.comment, c)
		case c == '#' && !j.bare: // as YAML and some readers of JSON have comments
			j.comment = append(j.comment, "//"...)
		case c <= ' ':
			j.bare = false
		case c == ':' || c == '=':
			if j.was && j.depth == 1 && j.overrides() {
				return wrongField
			}
			j.was, j.bare = false, false
		default:
			j.sign(c)
		}
	}
	return ""
}

// dataKey is a key that many services have in what they are told of requests. In JSON no server takes it for the
// request's own method.
var dataKey = regexp.MustCompile(`^http_?method_?$`)

// overrides tells whether the key that ends here is the method's.
func (j *jsonKeys) overrides() bool {
	data := dataKey.Match(j.key.text)
	return j.key.ends() && !data
}

// sign takes a byte that is in no string and no comment.
func (j *jsonKeys) sign(c byte) {
	switch c {
	case '{', '[':
		j.depth++
	case '}', ']':
		j.depth--
	case ',':
	default:
		if !j.bare {
			j.bare, j.was = true, true
			j.key.ends()
		}
		j.add(rune(c))
		return
	}
	j.was, j.bare = false, false
}

// pass takes one byte of what may be a comment: to the end of its line, or to an asterisk and a
// slash. Behind a slash that begins none, what comes is read as if it was not there. There are ends of lines that are
// one to some servers alone, so a comment must not have them.
func (j *jsonKeys) pass(c byte) string {
	j.comment = append(j.comment, c)
	switch n := len(j.comment); {
	case n == 2 && c != '/' && c != '*':
		j.comment = j.comment[:0]
		return j.read([]byte{c})
	case j.comment[1] == '/':
		return j.passLine(c)
	case n == 4 && j.comment[2] == '*' && c == '/':
		j.comment = j.comment[:0]
	case n == 4:
		j.comment = append(j.comment[:2], c)
	}
	return ""
}

// passLine takes one byte of a comment that ends with its line, which is the last of j.comment.
func (j *jsonKeys) passLine(c byte) string {
	const begin = len("//")
	if c == '\n' || c == '\r' {
		j.comment = j.comment[:0]
		return ""
	}
	last := j.comment[begin:]
	switch {
	case string(last) == "\u2028" || string(last) == "\u2029":
		return wrongComment
	case len(last) == len("\u2028"):
		j.comment = append(j.comment[:begin], last[1:]...)
	}
	return ""
}

func (j *jsonKeys) end() string { return "" }

// take takes one byte of a string.
func (j *jsonKeys) take(c byte) {
	switch {
	case len(j.escaped) > 0:
		j.escape(c)
	case c == '\\':
		j.escaped = append(j.escaped, c)
	case c == j.quote:
		j.quote, j.was = 0, true
	default:
		j.add(rune(c))
	}
}

// escape takes one byte of an escape: \u0041, or \x41 as lenient servers have it.
func (j *jsonKeys) escape(c byte) {
	j.escaped = append(j.escaped, c)
	length := map[byte]int{'u': len(`\u0041`), 'x': len(`\x41`)}[j.escaped[1]]
	if length == 0 {
		j.escaped = j.escaped[:0]
		if strings.IndexByte("bfnrtv", c) >= 0 {
			c = ' '
		}
		j.add(rune(c))
		return
	}
	meant := rune(0)
	for _, d := range j.escaped[2:] {
		meant = meant<<4 | rune(max(unhex(d), 0))
	}
	if len(j.escaped) == length {
		j.escaped = j.escaped[:0]
		j.key.add(byte(min(meant, 0x7f)))
	}
}

// add takes a character of a string or word. An end of a line is in none, or is left out of it.
func (j *jsonKeys) add(c rune) {
	if c != '\r' && c != '\n' {
		j.key.add(byte(min(c, 0x7f))) // no other letter is in a key that is looked for
	}
}
