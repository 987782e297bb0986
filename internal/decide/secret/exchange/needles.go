package exchange

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// shortest is the least length of a form of a text that is looked for, unless the text
// itself is shorter: a shorter one is found in what is something else.
const shortest = 8

// needle is a text that is looked for, and what it is of.
type needle struct{ text, of string }

// needles are looked for all at once, by the algorithm of Wu and Manber: a table says by
// three bytes how far the next place is at which a needle's first bytes can end. It is
// not changed once it is made.
type needles struct {
	all         []needle // sorted
	parent      []int    // of each of all, the one before it whose text it begins with; -1: there is none
	least, most int      // bytes of the shortest, and of the longest
	foreign     bool     // one has other letters than ASCII
	// One has a byte in it that ends a piece of structured text elsewhere, a line's end, or a blank line: see tail.
	hasEnding, hasBreak, hasBlankLine bool

	skip  []uint8          // by a hash; 0: a needle's first bytes may end here
	ends  map[uint32][]int // which of all, by a hash, in their order
	first [256][]int       // which of all, by the first byte, in their order
}

const (
	hashed = 1 << 12
	block  = 3 // bytes of a hash
)

func hashBytes(b []byte) uint32 {
	return (uint32(b[0])<<8 ^ uint32(b[1])<<4 ^ uint32(b[2])) % hashed
}

// newNeedles are the texts as they are written before anything escapes or encodes them,
// by what they are of.
func newNeedles(texts map[string][]string) *needles {
	n := &needles{}
	for of, some := range texts {
		for _, text := range some {
			for _, meant := range meanings(text) {
				n.all = append(n.all, needle{meant, of})
			}
		}
	}
	if len(n.all) == 0 {
		return n
	}
	n.buildIndex()
	return n
}

// maxMeanings bounds what one text is looked for as, beside its forms in base64.
const maxMeanings = 64

// meanings are a text, the ways in which it is written without an escape, and what readers of escapes
// make of each: see readings.
func meanings(text string) []string {
	all := append([]string{text, strings.ReplaceAll(text, " ", "+")}, charsets(text)...) // as forms write a space
	// Lists and queries double a quote, shells leave it for a moment. An equals sign at the end may be part of a line's end.
	all = append(all, strings.ReplaceAll(text, `"`, `""`), strings.ReplaceAll(text, "'", "''"), strings.ReplaceAll(text, "'", `'\''`), strings.TrimRight(text, "="))
	// An escape that the text begins at its end takes in what stands behind it, and a terminal's sequence that
	// begins before it and has no end takes in its first letter.
	all = append(all, beginsAtEnd.ReplaceAllString(text, ""), behindASequence(text))
	all = append(all, inBasicForm(text)...)
	if quoted, err := jsontext.AppendQuote(nil, text); err == nil {
		all = append(all, string(quoted[1:len(quoted)-1]))
	}
	all = distinct(nil, all)
	for i := 0; i < len(all) && len(all) < maxMeanings; i++ {
		all = distinct(all, readings(all[i]))
	}
	all = distinct(all[:min(len(all), maxMeanings)], readingsApart(text))
	for before := range 3 { // a part of a text in base64, of which the decoder makes other letters
		std := aligned(text, before)
		all = append(all, std, urlLetters(std))
	}
	return slices.DeleteFunc(all, func(s string) bool { return len(s) < block || len(s) < min(shortest, len(text)) })
}

// distinct adds what is not there yet.
func distinct(all, more []string) []string {
	for _, one := range more {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// beginsAtEnd finds the beginning of an escape at a text's end.
var beginsAtEnd = regexp.MustCompile(`(%(?:[0-9A-Fa-f]?|[uU][0-9A-Fa-f]{0,3})|&#?[0-9A-Za-z]{0,8}|\\+[0-9A-Za-z]{0,4})$`)

// endsASequence finds what a terminal takes for the end of a sequence that begins before a text: see
// controlSequence.
var endsASequence = regexp.MustCompile(`^[ -?]*[@-~]`)

// word finds a text that is a word, or may be a part of one.
var word = regexp.MustCompile(`^[A-Za-z]{0,15}$`)

// behindASequence is what is left of a text behind the beginning of a terminal's sequence; the text itself if that is
// a word, which is found in what is something else: 2024-development leaves evelopment.
func behindASequence(text string) string {
	if left := endsASequence.ReplaceAllString(text, ""); !word.MatchString(left) {
		return left
	}
	return text
}

// The kinds of escapes, by the byte with which one begins.
const (
	ofURLs     = 1 << iota // %
	ofMarkup               // &
	ofPrograms             // a backslash
	ofOthers               // what is not seen, and letters of full width
	kinds      = iota
)

func kindOfByte(c byte) int {
	switch c {
	case '%':
		return ofURLs
	case '&':
		return ofMarkup
	case '\\':
		return ofPrograms
	}
	return ofOthers
}

// readings are what is read in a text that has escapes of its own once somebody has escaped it and
// somebody else has read it: of its own escapes those are read, too, whose kind the writer did not escape.
// A writer of markup escapes each &, and leaves a %41; so there is one for each set of kinds.
func readings(text string) (all []string) {
	has := 0
	for at := nextEscape([]byte(text), 0); at < len(text); at = nextEscape([]byte(text), at+1) {
		has |= kindOfByte(text[at])
	}
	for some := 1; some < 1<<kinds; some++ {
		if some&has != some {
			continue
		}
		all = append(all, unescapeBy(func(b []byte) (meant [4]byte, size, n int) {
			if kindOfByte(b[0])&some == 0 {
				return meant, 0, 0
			}
			return readLeniently(b)
		}, text))
	}
	return all
}

// Bounds of how escapes of one text are told apart: of a few each set of them is one that is read while the
// others stay; of more, each one alone, and all but each one.
const (
	maxApart    = 4
	maxSingular = 16
)

// readingsApart are what is read in a text of which a writer has escaped some escapes once more than
// others, so that a reader of escapes comes to the latter first.
func readingsApart(text string) (all []string) {
	var parts []string // between the escapes, which are the odd ones
	var meant []string // of each escape
	begin := 0
	for b := []byte(text); ; {
		at := nextEscape(b, begin)
		if at == len(b) {
			parts = append(parts, text[len(text)-len(b):])
			break
		}
		is, size, n := escapeIn(readLeniently, b[at:], true)
		if n <= 0 {
			begin = at + 1
			continue
		}
		parts = append(parts, string(b[:at]), string(b[at:at+n]))
		meant = append(meant, string(is[:size]))
		b, begin = b[at+n:], 0
	}
	for _, some := range setsOf(len(meant)) {
		var read strings.Builder
		for i, part := range parts {
			if i%2 == 1 && some>>(i/2)&1 == 1 {
				part = meant[i/2]
			}
			read.WriteString(part)
		}
		all = append(all, read.String())
	}
	return all
}

// setsOf are sets of so many things that have not all of them, and not none; a bit stands for each.
func setsOf(many int) (sets []uint64) {
	all := uint64(1)<<min(many, maxSingular) - 1
	switch {
	case many < 2 || many > maxSingular:
	case many <= maxApart:
		for some := uint64(1); some < all; some++ {
			sets = append(sets, some)
		}
	default:
		for i := range many {
			sets = append(sets, 1<<i, all&^(1<<i))
		}
	}
	return sets
}

// charsets are a text as it is written where letters are not those of UTF-8, or are taken for
// others: in UTF-16, in Latin-1, as such a text read by one who does not know, with marks for
// what is no text, and in quoted-printable.
func charsets(text string) []string {
	var latin, misread, printable []byte
	for _, c := range []byte(text) {
		misread = utf8.AppendRune(misread, rune(c))
		if c == '=' || c >= utf8.RuneSelf {
			printable = fmt.Appendf(printable, "=%02X", c)
			continue
		}
		printable = append(printable, c)
	}
	for _, c := range text {
		if c > 0xff {
			latin = []byte(text)
			break
		}
		latin = append(latin, byte(c))
	}
	var little, big []byte
	if string(latin) != text { // of plain letters all but the zero bytes are the same
		for _, unit := range utf16.Encode([]rune(text)) {
			little, big = binary.LittleEndian.AppendUint16(little, unit), binary.BigEndian.AppendUint16(big, unit)
		}
	}
	return []string{string(latin), string(misread), string(printable), string([]rune(text)), string(little), string(big)}
}

// namedNeedles are those of one name.
func (n *needles) namedNeedles(name string) *needles {
	some := &needles{}
	for _, one := range n.all {
		if one.of == name {
			some.all = append(some.all, one)
		}
	}
	some.buildIndex()
	return some
}

// blankLine finds one in a text.
var blankLine = regexp.MustCompile(`\n[\r\n]|\r\r`)

// caseless are the same in lower case.
func (n *needles) caseless() *needles {
	lower := &needles{}
	for _, one := range n.all {
		lower.all = append(lower.all, needle{strings.ToLower(one.text), one.of})
	}
	lower.buildIndex()
	return lower
}

// findInText finds what a needle in a text is of, however it is escaped or encoded there; "": there
// is none.
func (n *needles) findInText(text string) (of string) {
	if len(n.all) == 0 || len(text) < n.least {
		return ""
	}
	_, of = (&scan{needles: n}).takeMore([]byte(text), true)
	return of
}

// masked is a text without needles.
func (n *needles) masked(text string) string {
	if len(n.all) == 0 || len(text) < n.least {
		return text
	}
	out, of := (&scan{needles: n}).takeMore([]byte(text), true)
	if of == "" {
		return text
	}
	return string(out)
}

// Unescape is a text without its escapes: those of URLs, of JSON and the like, and of
// markup. A text that is no escape stands for itself, as with servers that are not particular.
func Unescape(text string) string { return unescapeBy(escape, text) }

func unescapeBy(read escapeReader, text string) string {
	var out []byte
	for b := []byte(text); len(b) > 0; {
		next := nextEscape(b, 0)
		out, b = append(out, b[:next]...), b[next:]
		if len(b) == 0 {
			break
		}
		meant, size, n := escapeIn(read, b, true)
		if n <= 0 {
			out, b = append(out, b[0]), b[1:]
			continue
		}
		out, b = append(out, meant[:size]...), b[n:]
	}
	return string(out)
}

// UnescapeForm unescapes a part of a query or form, in which a plus is a space.
func UnescapeForm(text string) string { return Unescape(strings.ReplaceAll(text, "+", " ")) }

// Finder finds texts in an answer, in all the ways in which an Exchange would.
func Finder(texts ...string) func(answer []byte) bool {
	n := newNeedles(map[string][]string{"a secret": texts})
	return func(answer []byte) bool { return n.findInText(string(answer)) != "" }
}
