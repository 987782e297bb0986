package requestparts

import (
	"bytes"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// transferField finds the field of a part that says how it is encoded.
var transferField = regexp.MustCompile(`(?i)content-transfer-encoding[ \t]*:[ \t]*(?:\r?\n[ \t]+)*["']?([^\s;"',]*)`)

// encodedParts are the encodings of the parts of a body, and what each is of. Servers do not agree about what ends a head:
// where that makes a difference a part is there once for each end. All of them together are found in one pass.
func encodedParts(body []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		ends := headEnds()
		parts := make([]partStarts, len(ends)+1)
		for _, found := range transferField.FindAllSubmatchIndex(body, -1) {
			coding := strings.ToLower(string(body[found[2]:found[3]]))
			starts := make([]int, 0, len(parts))
			for i := range parts {
				start, is := found[1], !slices.ContainsFunc(ends, foundPlain) // without an end all is the part
				if i < len(ends) {
					start, is = ends[i].findFrom(body, found[1])
				}
				if !is || slices.Contains(starts, start) {
					continue
				}
				starts = append(starts, start)
				if parts[i].takePart(body, start, coding) && !yield(coding, parts[i].part) {
					return
				}
			}
		}
	}
}

// headEnds are the ways in which servers find where a head ends: at the one text that should end it, or at the first line
// that is empty, where lines end as they should or with a line feed, or with a carriage return as well, and a line is
// empty that has nothing, or only blanks.
func headEnds() []headEnd {
	return []headEnd{{strict: true}, {}, {blanks: true}, {returns: true}, {blanks: true, returns: true}}
}

// headEnd finds ends of heads behind places that only move on, so that all of these looks together pass a body once.
type headEnd struct {
	strict, blanks, returns bool

	next emptyLine
	has  bool // next is one
	gone bool // there is none any more
}

// emptyLine is from the line end before it to its own.
type emptyLine struct{ begin, end int }

func (e *headEnd) findFrom(body []byte, place int) (start int, found bool) {
	if e.has && e.next.begin >= place || e.gone {
		return e.next.end, !e.gone
	}
	if e.strict {
		at := bytes.Index(body[place:], []byte("\r\n\r\n"))
		e.next, e.has = emptyLine{place + at, place + at + 4}, at >= 0
	} else {
		e.next, e.has = e.emptyLine(body, place)
	}
	e.gone = !e.has
	return e.next.end, e.has
}

// foundPlain tells whether there is an end, and one in which an empty line has nothing.
func foundPlain(e headEnd) bool { return e.has && !e.blanks }

func (e *headEnd) emptyLine(body []byte, place int) (line emptyLine, found bool) {
	for at := place; at < len(body); {
		to := bytes.IndexAny(body[at:], "\r\n")
		if to < 0 {
			break
		}
		at += to
		if line.end = e.lineEnd(body, at); line.end == at {
			at++
			continue
		}
		line.begin, at = at, line.end
		for e.blanks && at < len(body) && strings.IndexByte(" \t\v\f", body[at]) >= 0 {
			at++
		}
		if line.end = e.lineEnd(body, at); line.end > at {
			return line, true
		}
	}
	return emptyLine{}, false
}

// lineEnd is where a line end that begins at a place ends; the place itself: none does.
func (e *headEnd) lineEnd(body []byte, at int) (end int) {
	switch {
	case bytes.HasPrefix(body[at:], []byte("\n")):
		return at + 1
	case bytes.HasPrefix(body[at:], []byte("\r\n")):
		return at + 2
	case e.returns && bytes.HasPrefix(body[at:], []byte("\r")):
		return at + 1
	}
	return at
}

// partStarts are the places at which parts begin, which only move on: several heads may have one end.
type partStarts struct {
	at       int
	part     []byte          // what lies between the place and the next boundary
	codings  map[string]bool // of the part
	boundary next
	end      int // of the boundary that was found last
	trimmed  int // the same without the carriage returns before it
}

// takePart tells whether the part that begins at a place is a new one in this encoding.
func (p *partStarts) takePart(body []byte, at int, coding string) bool {
	if at != p.at || p.codings == nil {
		p.at, p.part, p.codings = at, body[at:], map[string]bool{}
		p.boundary.of = "\n--"
		if end, found := p.boundary.from(body, at); found {
			if p.end != end {
				p.end, p.trimmed = end, len(bytes.TrimRight(body[:end], "\r"))
			}
			p.part = body[at:max(at, p.trimmed)]
		}
	}
	is := !p.codings[coding]
	p.codings[coding] = true
	return is
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
