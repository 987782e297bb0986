package reading

import (
	"bytes"
	"iter"
	"regexp"
	"strings"
)

// transferField finds the field of a part that says how it is encoded.
var transferField = regexp.MustCompile(`(?i)content-transfer-encoding[ \t]*:[ \t]*(?:\r?\n[ \t]+)*["']?([^\s;"',]*)`)

// encodedParts are the encodings of the parts of a body, and what each is of. Servers do not agree about what ends a head:
// where that makes a difference a part is there once for each end. All of them together are found in one pass.
func encodedParts(body []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		ends := headEnds()
		strict, nearest := partStarts{}, partStarts{}
		for _, found := range transferField.FindAllSubmatchIndex(body, -1) {
			coding := strings.ToLower(string(body[found[2]:found[3]]))
			byOrder, byPlace := found[1], -1 // without an end all is the part
			for i := range ends {
				at, is := ends[i].from(body, found[1])
				if !is {
					continue
				}
				if at += len(ends[i].of); byPlace < 0 {
					byOrder, byPlace = at, at
				}
				byPlace = min(byPlace, at)
			}
			if strict.take(byOrder, coding) && !yield(coding, strict.part(body)) {
				return
			}
			if byPlace >= 0 && byPlace != byOrder && nearest.take(byPlace, coding) && !yield(coding, nearest.part(body)) {
				return
			}
		}
	}
}

// headEnds are the ends of heads in the order in which they count.
func headEnds() []next { return []next{{of: "\r\n\r\n"}, {of: "\n\n"}, {of: "\r\r"}} }

// partStarts are the places, which only move on, at which parts begin: several heads may have one end.
type partStarts struct {
	at       int
	codings  map[string]bool // of the part that begins there
	boundary next
}

// take tells whether the part that begins at a place is a new one in this encoding.
func (p *partStarts) take(at int, coding string) bool {
	if at != p.at || p.codings == nil {
		p.at, p.codings = at, map[string]bool{}
	}
	is := !p.codings[coding]
	p.codings[coding] = true
	return is
}

// part is what lies between the place and the next boundary.
func (p *partStarts) part(body []byte) []byte {
	p.boundary.of = "\n--"
	if at, found := p.boundary.from(body, p.at); found {
		return bytes.TrimRight(body[p.at:at], "\r")
	}
	return body[p.at:]
}

// next finds a text behind places that only move on, so that all of these looks together pass a body once.
type next struct {
	of   string
	at   int
	gone bool // there is none any more
	has  bool // at is of one
}

func (n *next) from(body []byte, place int) (at int, found bool) {
	if n.has && n.at >= place || n.gone {
		return n.at, !n.gone
	}
	at = bytes.Index(body[place:], []byte(n.of))
	n.at, n.has, n.gone = place+at, at >= 0, at < 0
	return n.at, n.has
}

// Heads looks for parts that are encoded while a body passes.
type Heads struct {
	kept []byte // what a field may begin with
}

// keptHead is as long as such a field is at most, with its line ends.
const keptHead = 256

// Encoded takes more of the body in, and gives the encoding of a part that is not read as it is
// written; "": there is none.
func (h *Heads) Encoded(more []byte) (coding string) {
	h.kept = append(h.kept, more...)
	for _, found := range transferField.FindAllSubmatchIndex(h.kept, -1) {
		if found[3] == len(h.kept) { // the word may go on
			continue
		}
		if word := strings.ToLower(string(h.kept[found[2]:found[3]])); word != "" && word != "7bit" && word != "8bit" && word != "binary" {
			coding = word
		}
	}
	h.kept = append(h.kept[:0], h.kept[max(0, len(h.kept)-keptHead):]...)
	return coding
}

// charsetOf finds what a type says of its letters, however bad the rest of it is.
var charsetOf = regexp.MustCompile(`(?i)charset\*?\s*=\s*(?:[a-z0-9-]*'[^']*')?["']?([^"';,\s]*)`)

// charsetsOf are the charsets that values of a field name.
func charsetsOf(values []string) (all []string) {
	for _, value := range values {
		for _, found := range charsetOf.FindAllStringSubmatch(value, -1) {
			all = append(all, strings.ToLower(found[1]))
		}
	}
	return all
}

// partType finds the type of a part.
var partType = regexp.MustCompile(`(?i)content-type[ \t]*:([^\r\n]*(?:\r?\n[ \t][^\r\n]*)*)`)

// partCharsets are the charsets that parts of a body are written in, as they say.
func partCharsets(b Body, body []byte) (all []string) {
	if !b.HasParts() {
		return nil
	}
	for _, found := range partType.FindAllSubmatch(body, -1) {
		all = append(all, charsetsOf([]string{string(found[1])})...)
	}
	return all
}

// unquote takes quoted-printable off.
func unquote(part []byte) []byte {
	out := make([]byte, 0, len(part))
	for i := 0; i < len(part); i++ {
		if part[i] != '=' {
			out = append(out, part[i])
			continue
		}
		end := i + 1
		for end < len(part) && (part[end] == ' ' || part[end] == '\t') {
			end++
		}
		switch {
		case end < len(part) && part[end] == '\n':
			i = end
		case end+1 < len(part) && part[end] == '\r' && part[end+1] == '\n':
			i = end + 1
		case i+2 < len(part) && nibble(part[i+1]) >= 0 && nibble(part[i+2]) >= 0:
			out = append(out, byte(nibble(part[i+1])<<4|nibble(part[i+2])))
			i += 2
		default:
			out = append(out, part[i])
		}
	}
	return out
}

// nibble is the value of a hexadecimal digit; below 0: it is none.
func nibble(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
