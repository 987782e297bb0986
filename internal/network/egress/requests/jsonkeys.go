package requests

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// jsonKeys reads the keys of an object in JSON: there are frameworks that take one for a form. Servers read alike what is JSON by the
// letter, and there only a key of the outermost object can be the method's. Whatever else they take for JSON (comments, other quotes,
// words without any, YAML) each of them reads in its own way, so in that no word may be such a key, wherever it stands. In a body that
// does not say that it is JSON a colon or an equals sign has to stand behind the word: there are texts that begin like it.
type jsonKeys struct {
	framed  bool // messages have lengths before them, which may have zero bytes in them
	sniffed bool // it does not say that it is JSON
	prefix  int  // bytes that have come of what is before a message
	marked  int  // bytes that have come of a byte order mark; -1: something else has come

	open    []byte // brackets that are open, from the outermost on
	within  bool   // inside of a string
	escaped []byte // of an escape in it, from its backslash on
	token   bool   // inside of a number, true, false or null
	done    bool   // a value has ended, and nothing came behind it
	key     key    // the last string
	was     bool   // the value that has ended was a string

	binary bool   // it has bytes that are in no text of YAML's, such as what is compressed has
	letter []byte // of UTF-8 in a string, as far as it has come
	loose  bool   // what came is no JSON by the letter
	words  words
	ascii  words // the same, of the text without what is no ASCII: there are servers that leave out of a key what is no letter
	differ bool  // the two have come to differ in what they are within; until then ascii stands still
}

func (j *jsonKeys) readPiece(p []byte) string {
	for _, c := range p {
		if c == 0 && !j.framed && !j.sniffed { // none is in UTF-8's JSON, and some servers find out by it that it is UTF-16
			return wrongText
		}
		j.takeByte(c)
		if !j.before(c) {
			j.binary = j.binary || c < ' ' && strings.IndexByte("\t\r\n", c) < 0
			if (j.within || len(j.open) > 0) && !j.isLetter(c) && !j.sniffed {
				return wrongText // there are servers that leave such a byte out of a key
			}
			j.loose = j.loose || !j.strict(c)
		}
		if j.loose && j.mentions() {
			return wrongLoose
		}
		if c == ':' && !j.within && j.was && len(j.open) == 1 && j.key.overrides() {
			return wrongField
		}
		if c == ':' && !j.within {
			j.was = false
		}
	}
	return ""
}

// takeByte takes one byte of a text of which nobody knows how it is read.
func (j *jsonKeys) takeByte(c byte) {
	if c >= utf8.RuneSelf && !j.differ {
		j.differ = true
		j.words.copyTo(&j.ascii)
	}
	j.words.takeByte(c)
	if !j.differ || c >= utf8.RuneSelf {
		return
	}
	j.ascii.takeByte(c)
	if j.words.between() && j.ascii.between() && j.words.was == j.ascii.was {
		j.differ = false
		j.words.found, j.words.named, j.words.tagged = j.words.found || j.ascii.found, j.words.named || j.ascii.named, j.words.tagged || j.ascii.tagged
	}
}

func (j *jsonKeys) endText() string {
	if j.takeByte(' '); j.loose && j.mentions() {
		return wrongLoose
	}
	return ""
}

// mentions tells whether a word of the text may be the method's key.
func (j *jsonKeys) mentions() bool {
	return j.words.named || j.ascii.named || !j.sniffed && (j.words.found || j.ascii.found || j.words.tagged && !j.binary)
}

// isLetter takes a byte of text; false: it ends what is no letter of UTF-8.
func (j *jsonKeys) isLetter(c byte) bool {
	return len(j.letter) == 0 && c < utf8.RuneSelf || j.goesOn(c)
}

// goesOn is isLetter of a letter that is not of ASCII.
func (j *jsonKeys) goesOn(c byte) bool {
	j.letter = append(j.letter, c)
	if !utf8.FullRune(j.letter) {
		return true
	}
	_, n := utf8.DecodeRune(j.letter)
	whole := n == len(j.letter)
	j.letter = j.letter[:0]
	return whole && n > 1
}

// dataKey is a key that many services have in what they are told of requests. In JSON no server takes it for the
// request's own method.
var dataKey = regexp.MustCompile(`^http_?method_?$`)

// overrides tells whether the key that ends here is the method's in JSON, and begins another one.
func (k *key) overrides() bool {
	text := k.text // whose memory the next one has
	return k.endsAsMethod() && !dataKey.Match(text)
}

// framePrefix is how many bytes are before a message: one of flags, and four of its length.
const framePrefix = 5

// before takes a byte that is before a text in JSON and not of it: of a mark that it is UTF-8, or of what tells a message's length; false: it is
// none. The first byte of a length is zero, and no JSON has such a byte, so nobody takes the one for the other.
func (j *jsonKeys) before(c byte) bool {
	return (j.framed || j.marked >= 0) && j.takeBefore(c)
}

func (j *jsonKeys) takeBefore(c byte) bool {
	const mark = "\xef\xbb\xbf"
	if j.marked >= 0 && j.marked < len(mark) {
		if c == mark[j.marked] {
			j.marked++
			return true
		}
		j.loose, j.marked = j.loose || j.marked > 0, -1
	}
	const lastMessage = 2 // a flag
	switch {
	case !j.framed || j.within || len(j.open) > 0 || j.prefix == 0 && c != 0 && c != lastMessage:
		return false
	case j.prefix == 1 && c != 0:
		j.loose = true
	}
	j.prefix = (j.prefix + 1) % framePrefix
	j.token, j.done, j.was = false, false, false
	return true
}

// maxOpen is how many brackets may be open in what is read by the letter. Servers differ from some hundreds on.
const maxOpen = 100

// strict takes one byte of JSON by the letter; false: it is none.
func (j *jsonKeys) strict(c byte) bool {
	switch {
	case j.within:
		return j.inString(c)
	case strings.IndexByte(" \t\r\n", c) >= 0, c == 0x1e && len(j.open) == 0: // which is before each text of a sequence (RFC 7464)
		j.token = false
		return true
	case c == ',' || c == ':':
		ok := j.done && (c == ',' || j.was)
		j.token, j.done = false, false
		return ok && len(j.open) > 0
	case c == '}' || c == ']':
		return j.closeBracket(c)
	case j.token && isToken(c):
		return true
	case j.token || j.done && len(j.open) > 0:
		return false // two values with nothing between them
	case c == '"':
		j.within, j.was = true, false
		j.key.endsAsMethod()
		return true
	case c == '{' || c == '[':
		j.open, j.done = append(j.open, c), false
		return len(j.open) <= maxOpen
	}
	j.token, j.done, j.was = true, true, false
	return isToken(c)
}

// isToken tells whether a byte may be one of a number, true, false or null.
func isToken(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// closeBracket takes a closing bracket.
func (j *jsonKeys) closeBracket(c byte) bool {
	last := len(j.open) - 1
	if last < 0 || j.open[last] != map[byte]byte{'}': '{', ']': '['}[c] {
		return false
	}
	j.open, j.token, j.done, j.was = j.open[:last], false, true, false
	return true
}

// inString takes one byte of a string; false: no string has it as it stands.
func (j *jsonKeys) inString(c byte) bool {
	switch {
	case len(j.escaped) > 0:
		return j.escape(c)
	case c == '\\':
		j.escaped = append(j.escaped, c)
	case c == '"':
		j.within, j.done, j.was = false, true, true
	default:
		j.key.addByte(min(c, 0x7f)) // no other letter is in a key that is looked for
		return c >= ' '
	}
	return true
}

// escape takes one byte of an escape: \n, or \u0041.
func (j *jsonKeys) escape(c byte) bool {
	j.escaped = append(j.escaped, c)
	if j.escaped[1] != 'u' {
		j.escaped = j.escaped[:0]
		if strings.IndexByte("bfnrt", c) >= 0 {
			j.key.addByte(' ')
			return true
		}
		j.key.addByte(min(c, 0x7f))
		return strings.IndexByte(`"\/`, c) >= 0
	}
	if len(j.escaped) < len(`\u0041`) {
		return len(j.escaped) == 2 || hexValue(c) >= 0
	}
	meant := rune(0)
	for _, d := range j.escaped[2:] {
		meant = meant<<4 | rune(max(hexValue(d), 0))
	}
	j.escaped = j.escaped[:0]
	j.key.addByte(byte(min(meant, 0x7f)))
	return hexValue(c) >= 0
}

// words looks for the method's keys among the words of a text of which nobody knows how it is read. The zero value is ready.
type words struct {
	tagged  bool // a tag of YAML's is there
	last    byte
	found   bool // one of them is there
	named   bool // and what stands behind a key comes behind it
	word    key
	behind  key    // what of the word stands behind an escape that may be none, and so the word's end
	parted  bool   // there was one in the word
	was     bool   // the last word was one
	hidden  bool   // a letter of the word is written in a way that hides it
	escaped bool   // behind a backslash
	joined  bool   // behind one at the end of a line
	digits  []byte // of an escape, from its letter on
	braced  bool   // they stand in braces
}

// copyTo makes another one the same, with memory of its own.
func (w *words) copyTo(other *words) {
	word, behind, digits := other.word.text, other.behind.text, other.digits
	*other = *w
	other.word.text, other.behind.text = append(word[:0], w.word.text...), append(behind[:0], w.behind.text...)
	other.digits = append(digits[:0], w.digits...)
}

// between tells whether nothing has begun: two of which that is so go on alike if their last bytes are the same, and their last words are keys or
// not.
func (w *words) between() bool {
	return w.word.isEmpty() && w.behind.isEmpty() && len(w.digits) == 0 && !w.parted && !w.hidden && !w.escaped && !w.joined && !w.braced
}

// takeByte takes one byte.
func (w *words) takeByte(c byte) {
	w.readByte(c)
	// A tag of YAML's may say that a key is written in base64: by a name, or by what %TAG says before.
	switch w.last {
	case '!':
		w.tagged = w.tagged || c == '!' || c == '<' || c == '%' || 'a' <= c|0x20 && c|0x20 <= 'z'
	case '%':
		w.tagged = w.tagged || c == 'T'
	}
	w.last = c
}

func (w *words) readByte(c byte) {
	switch {
	case len(w.digits) > 0:
		w.takeDigit(c)
	case w.escaped:
		w.escape(c)
	case c == '\\':
		w.escaped = true
	case ofWords[c]:
		w.addByte(c)
		w.joined = false
	case w.joined && (c <= ' ' || c >= 0x80): // the line's end, or how the next one is set in
	default:
		w.joined = false
		w.endWord()
		w.named = w.named || w.was && strings.IndexByte(":=/#", c) >= 0 // what stands behind a key, or a comment before that
	}
}

// ofWords tells which bytes are of words.
var ofWords = func() (all [256]bool) { //nolint:gochecknoglobals // a constant
	for c := range all {
		all[c] = c == 0 || c == '_' || c == '-' || c == '.' || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
	}
	return all
}()

func (w *words) addByte(c byte) {
	w.was = false
	w.word.addByte(c)
	if w.parted {
		w.behind.addByte(c)
	}
}

// endWord takes the end of a word, if there is one.
func (w *words) endWord() {
	if len(w.word.text) == 0 && !w.hidden {
		return
	}
	whole, part := w.word.overrides(), w.behind.overrides()
	w.was = whole || part || w.hidden
	w.found, w.hidden, w.parted = w.found || w.was, false, false
}

// escape takes the byte behind a backslash. At the end of a line, of which there are some in Unicode as well, both are nothing in a string,
// to some with the blanks behind them, and something else in a comment: either way they hide a word.
func (w *words) escape(c byte) {
	w.escaped = false
	switch {
	case c == '\r' || c == '\n' || c >= 0x80:
		w.hidden, w.joined = true, true
	case strings.IndexByte("abefnrtv", c) >= 0:
		w.endWord()
	case strings.IndexByte("uUxX", c) >= 0:
		w.digits = append(w.digits, c)
	case '0' <= c && c <= '9' || c == 'N': // a letter by a number of another base, or by its name
		w.hidden = true
	default:
		if w.addByte(min(c, 0x7f)); !ofWords[c] { // YAML has a backslash that escapes nothing, and a comma behind it ends a word
			w.behind.endsAsMethod()
			w.parted = true
		}
	}
}

// takeDigit takes a byte of an escape with digits. One of a letter of ASCII, which nobody has to write so, hides a word.
func (w *words) takeDigit(c byte) {
	switch {
	case c == '{' && len(w.digits) == 1: // \u{41}
		w.braced = true
		return
	case w.braced && hexValue(c) >= 0:
		return
	case hexValue(c) < 0:
		w.hidden, w.braced, w.digits = true, false, w.digits[:0]
		return
	}
	w.digits = append(w.digits, c)
	length := map[byte]int{'u': 4, 'U': 8, 'x': 2, 'X': 2}[w.digits[0]]
	if len(w.digits) <= length {
		return
	}
	if strings.Trim(string(w.digits[1:length-1]), "0") == "" && hexValue(w.digits[length-1]) < 8 {
		w.hidden = true
	} else {
		w.endWord()
	}
	w.digits = w.digits[:0]
}
