package requests

import (
	"bytes"
	"strings"
)

// sniffedKeys reads the keys of a body by what it begins with, and not by its type: of an object in
// JSON, in whichever letters, and of a form. Others it passes over. A body whose type names another
// way to read it is read that way alone as long as it begins so: what texts and programs quote is
// neither.
type sniffedKeys struct {
	begins string // bytes with one of which a body of its type begins; "": any

	head  []byte // what came first, until it tells the letters
	unit  int    // bytes of a letter; 0: not known yet
	low   int    // which of them has its lowest bits
	part  []byte // of a letter
	begun bool   // what is behind blanks has come
	lead  leadIn
	json  *jsonKeys
	form  *quotedKeys
}

// jsonBegins are what texts in JSON begin with.
const jsonBegins = "{[\"-0123456789tfn"

// marks are what tells how letters are written: by a mark, or by where zero bytes are in the first
// two characters of JSON, which are ASCII. The longer ones come first.
var marks = []struct { //nolint:gochecknoglobals // a constant
	mark      string // _ is any byte but zero
	cut       int    // bytes of it that are no text
	unit, low int
}{
	{"\xff\xfe\x00\x00", 4, 4, 0},
	{"\x00\x00\xfe\xff", 4, 4, 3},
	{"_\x00\x00\x00", 0, 4, 0},
	{"\x00\x00\x00_", 0, 4, 3},
	{"\xef\xbb\xbf", 3, 1, 0},
	{"\xff\xfe", 2, 2, 0},
	{"\xfe\xff", 2, 2, 1},
	{"_\x00_\x00", 0, 2, 0},
	{"\x00_\x00_", 0, 2, 1},
}

// longestMark is how much of a body tells its letters.
const longestMark = 4

func (s *sniffedKeys) readPiece(p []byte) string {
	if s.unit == 0 {
		if s.head = append(s.head, p...); len(s.head) < longestMark {
			return ""
		}
		p = s.learnEncoding()
	}
	return s.readEncoded(p)
}

func (s *sniffedKeys) endText() string {
	if s.unit == 0 {
		if wrong := s.readEncoded(s.learnEncoding()); wrong != "" {
			return wrong
		}
	}
	if s.json != nil {
		if wrong := s.json.endText(); wrong != "" {
			return wrong
		}
	}
	if s.form != nil {
		return s.form.endText()
	}
	return ""
}

// learnEncoding finds out how letters are written. It gives what has come of the text.
func (s *sniffedKeys) learnEncoding() (text []byte) {
	s.unit = 1
	for _, m := range marks {
		if len(s.head) < len(m.mark) {
			continue
		}
		is := true
		for i := range len(m.mark) {
			is = is && (s.head[i] == m.mark[i] || m.mark[i] == '_' && s.head[i] != 0)
		}
		if is {
			s.unit, s.low = m.unit, m.low
			return s.head[m.cut:]
		}
	}
	return s.head
}

// readEncoded reads bytes in whichever letters.
func (s *sniffedKeys) readEncoded(p []byte) string {
	if s.unit == 1 {
		return s.readASCII(p)
	}
	if s.begun && s.json == nil && s.lead == 0 {
		return ""
	}
	text := make([]byte, 0, len(p)/s.unit+1)
	for _, c := range p {
		if s.part = append(s.part, c); len(s.part) < s.unit {
			continue
		}
		meant := s.part[s.low]
		if s.part[s.low] = 0; meant > 0x7e || strings.Trim(string(s.part), "\x00") != "" {
			meant = 0x7f // no letter of a key's
		}
		text, s.part = append(text, meant), s.part[:0]
	}
	return s.readASCII(text)
}

// readASCII reads bytes of ASCII.
func (s *sniffedKeys) readASCII(p []byte) string {
	if !s.begun {
		if p = bytes.TrimLeft(p, " \t\r\n"); len(p) == 0 {
			return ""
		}
		s.beginText(p[0])
	}
	text := p
	if s.lead != 0 {
		text = s.passLeadIn(p)
	}
	if s.json != nil {
		if wrong := s.json.readPiece(text); wrong != "" {
			return wrong
		}
	}
	if s.form != nil {
		return s.form.readPiece(p)
	}
	return ""
}

// passLeadIn passes over what may be nothing before JSON. It gives what is behind that.
func (s *sniffedKeys) passLeadIn(p []byte) []byte {
	for i, c := range p {
		begins := false
		if s.lead, begins = s.lead.takeByte(c); begins {
			s.json = &jsonKeys{sniffed: true, loose: true}
		}
		if s.lead == 0 {
			return p[i:]
		}
	}
	return nil
}

// beginText takes the first byte behind blanks.
func (s *sniffedKeys) beginText(c byte) {
	s.begun, s.head = true, nil
	if strings.IndexByte(s.begins, c) >= 0 {
		return
	}
	switch {
	case c == '{':
		s.json = &jsonKeys{sniffed: true}
	case c == '/' || c == '#' || c < ' ' || isOddBlank(c):
		s.lead = atStart
	}
	if s.unit == 1 {
		s.form = &quotedKeys{within: true}
	}
}

// leadIn is where servers may be in what stands before an object in JSON and is nothing to lenient ones: blanks, and comments from
// # or // to the end of a line, or from /* to */. Which bytes are blanks, or end a line, no two agree on, nor whether comments are in one
// another; so it is a set of places, of each reading one. 0: to all of them something has come that is neither, or the object.
type leadIn uint8

const (
	atStart leadIn = 1 << iota // between comments
	atSlash                    // behind a slash that begins one
	inLine                     // in one that ends with a line
	inBlock                    // in one that has an end of its own
	atStar                     // in such a one behind a star
)

// leads are the places that leadIn.nextState gives, by where it stands and the byte: to look these up costs a tenth of that.
var leads = func() (all [2 * atStar][256]leadIn) { //nolint:gochecknoglobals // a constant
	for l := range all {
		for c := range all[l] {
			all[l][c] = leadIn(l).nextState(byte(c))
		}
	}
	return all
}()

// takeByte takes one byte. An object may begin with it.
func (l leadIn) takeByte(c byte) (next leadIn, begins bool) {
	if c == '{' && l&atStart != 0 {
		return 0, true
	}
	return leads[l][c], false
}

// nextState is where servers may be behind one more byte with which no object begins.
func (l leadIn) nextState(c byte) (next leadIn) {
	goOn := func(from, to leadIn, does bool) {
		if does && l&from != 0 {
			next |= to
		}
	}
	goOn(atStart, atStart, c <= ' ' || isOddBlank(c))
	goOn(atStart, atSlash, c == '/')
	goOn(atStart, inLine, c == '#')
	goOn(atSlash, inLine, c == '/')
	goOn(atSlash, inBlock, c == '*')
	goOn(inLine, inLine, c != '\n')
	goOn(inLine, atStart, c == '\n' || c == '\r' || isOddBlank(c))
	goOn(inBlock, inBlock, true)
	goOn(inBlock, atStar, c == '*')
	goOn(atStar, atStart, c == '/')
	return next
}

// isOddBlank tells whether a byte may be of a blank, or of a line's end, that is none in JSON by the letter: of a tabulator for lines or a
// form feed, of the spaces and separators of Unicode in UTF-8 and what once was one or has no width (U+180E, U+200B), or one of these in
// other letters (0x7f).
func isOddBlank(c byte) bool {
	return strings.IndexByte("\v\f\x7f\x9a\x9f\xa0\xa8\xa9\xaf\xbb\xbf\xc2\xe1\xe2\xe3\xef", c) >= 0 || 0x80 <= c && c <= 0x8f
}

// quotedKeys reads the keys of a form in a body that need not be one: a key has no blank in it, and
// begins where the body does, or right behind an ampersand or a semicolon.
type quotedKeys struct {
	key    []byte
	within bool // what comes may be of a key
}

func (q *quotedKeys) readPiece(p []byte) string {
	for len(p) > 0 {
		if !q.within {
			next := bytes.IndexAny(p, "&;")
			if next < 0 {
				return ""
			}
			p, q.within, q.key = p[next+1:], true, q.key[:0]
			continue
		}
		c := p[0]
		switch p = p[1:]; {
		case c == '&' || c == ';':
			q.key = q.key[:0]
		case c == '=':
			if q.within = false; q.overrides() {
				return wrongField
			}
		case c <= ' ' || c > '~' || len(q.key) == len("%u0000")*maxKey:
			q.within = false
		default:
			q.key = append(q.key, c)
		}
	}
	return ""
}

func (q *quotedKeys) endText() string { return "" } // a key without a value names no method

// overrides tells whether the key is the method's.
func (q *quotedKeys) overrides() bool {
	keys := &formKeys{}
	return keys.readPiece(q.key) != "" || keys.endText() != ""
}
