package requests

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// Bounds of a field of a part's head, of all of these that are looked at in one body, in bytes, and
// of such a field's parameters. Reading one takes much longer than reading what is between them, and
// no client sends as many.
const (
	maxPartHead       = 8 << 10
	maxPartHeads      = 1 << 20
	maxPartParameters = 16
)

// partHeads reads the names of a multipart body's parts. Where servers see a part's beginning,
// and a field's in its head, they do not agree either: so all is looked at that could be the field
// which names a part.
type partHeads struct {
	kept   []byte // what a field may begin with
	looked int    // bytes of fields that were looked at
}

// maxHeadStart is how long the name of such a field, and its colon, can be.
const maxHeadStart = 64

func (h *partHeads) readPiece(p []byte) string { return h.lookAtHeads(p, false) }

func (h *partHeads) endText() string { return h.lookAtHeads(nil, true) }

func (h *partHeads) lookAtHeads(p []byte, last bool) string {
	h.kept = append(h.kept, p...)
	rest := h.kept
	for {
		at, value, isID := headStart(rest)
		if at < 0 {
			h.kept = append(h.kept[:0], rest[max(0, len(rest)-maxHeadStart):]...)
			return ""
		}
		length := fieldEnd(rest[value:], last)
		switch {
		case length > maxPartHead || length < 0 && len(rest)-value > maxPartHead:
			return wrongParts
		case length < 0:
			h.kept = append(h.kept[:0], rest[at:]...)
			return ""
		}
		if h.looked += length; h.looked > maxPartHeads {
			return wrongParts
		}
		field := unfolded.ReplaceAllString(string(rest[value:value+length]), " ")
		wrong := ""
		if isID {
			wrong = wrongMethodKey(strings.Trim(field, " \t<>"))
		} else {
			wrong = disposition(field)
		}
		if wrong != "" {
			return wrong
		}
		rest = rest[value+length:]
	}
}

// headStart finds the first field that names a part: its disposition or, as some have it, its id. It
// begins at "at" and its value at "value"; at below 0: there is none.
func headStart(b []byte) (at, value int, isID bool) {
	for value < len(b) {
		colon := bytes.IndexByte(b[value:], ':')
		if colon < 0 {
			break
		}
		value += colon + 1
		before := b[max(0, value-maxHeadStart) : value-1]
		for range 16 {
			if n := len(before); n > 0 && (before[n-1] == ' ' || before[n-1] == '\t') {
				before = before[:n-1]
			}
		}
		before, isID = cutWord(before, "id")
		if !isID {
			disposed := false
			if before, disposed = cutWord(before, "disposition"); !disposed {
				continue
			}
		}
		for range 12 { // three characters
			if n := len(before); n > 0 && !wordByte(before[n-1]) {
				before = before[:n-1]
			}
		}
		if before, found := cutWord(before, "content"); found {
			return max(0, value-maxHeadStart) + len(before), value, isID
		}
	}
	return -1, 0, false
}

// cutWord takes a word, in capitals or not, off the end of b.
func cutWord(b []byte, word string) (before []byte, found bool) {
	at := len(b) - len(word)
	if at < 0 || !strings.EqualFold(string(b[at:]), word) {
		return b, false
	}
	return b[:at], true
}

// wordByte tells whether a byte can't stand between the words of a field's name.
func wordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '\r' || c == '\n' || c == ':'
}

// fieldEnd is the length of a field that goes on in lines that begin with a blank; below 0: its
// end has not come.
func fieldEnd(b []byte, last bool) int {
	for i := 0; i < len(b); i++ {
		end := bytes.IndexAny(b[i:], "\r\n")
		if end < 0 {
			break
		}
		next := i + end + 1
		if b[next-1] == '\r' && next < len(b) && b[next] == '\n' {
			next++
		}
		if next < len(b) && b[next] != ' ' && b[next] != '\t' {
			return i + end
		}
		i = next
	}
	if last {
		return len(b)
	}
	return -1
}

// unfolded is where a field goes on in another line.
var unfolded = regexp.MustCompile(`[\r\n]+[ \t]+`)

// parameter is a parameter of a disposition that all servers read alike: a name without a
// second part, and a quoted value or a word.
var parameter = regexp.MustCompile(`^\s*([A-Za-z0-9_-]+)(\*?)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s"'\\;,=]*))\s*(?:;|$)`)

// disposition tells what is wrong with how a part is named.
func disposition(field string) string {
	kind, rest, _ := strings.Cut(field, ";")
	if strings.ContainsAny(kind, "=\"") {
		return wrongParts
	}
	for _, found := range anyName.FindAllStringSubmatch(field, -1) { // wherever a server sees a parameter begin
		if wrong := wrongMethodKey(strings.Trim(found[1], "\"'\\<> \t")); wrong != "" {
			return wrong
		}
	}
	var names []string
	for strings.TrimSpace(rest) != "" {
		found := parameter.FindStringSubmatch(rest)
		if found == nil && extended.MatchString(rest) {
			found = extended.FindStringSubmatch(rest)
		}
		if found == nil || len(names) == maxPartParameters {
			return wrongParts
		}
		rest = rest[len(found[0]):]
		name, value := strings.ToLower(found[1]), found[3]+found[4]
		if slices.Contains(names, name+found[2]) || name == "name" && (found[2] != "" || strange.MatchString(value)) {
			return wrongParts
		}
		names = append(names, name+found[2])
		if name != "name" && name != "filename" {
			continue
		}
		if _, after, ok := strings.Cut(value, "''"); ok && found[2] != "" {
			value = after
		}
		if wrong := wrongMethodKey(strings.ReplaceAll(value, `\`, "")); wrong != "" { // some take a file's name where the part has none
			return wrong
		}
	}
	return ""
}

// anyName is what could be a part's name, also inside of another parameter's value.
var anyName = regexp.MustCompile(`(?i)name[*0-9]*\s*=([^;]*)`)

// extended is the one parameter with a charset that clients send, a file's name.
var extended = regexp.MustCompile(`(?i)^\s*(filename)(\*)\s*=\s*()((?:utf-8|iso-8859-1)'[^'";]*'[^\s"'\\;,]*)\s*(?:;|$)`)

// strange is a name of which some servers read less than others, or something else.
var strange = regexp.MustCompile(`\\|^\s*['<]|['>]\s*$|=\?|[\x00-\x1f\x7f]`)

// wrongMethodKey says what is wrong with a text that is the method's key, as it stands or decoded; ""
// for any other.
func wrongMethodKey(text string) string {
	for _, one := range []byte{'%', 0} { // no escapes: for a % stands something else then
		keys := &formKeys{}
		for i := range len(text) {
			if c := text[i]; c == '%' && one == 0 {
				keys.take('_')
			} else {
				keys.take(c)
			}
		}
		if keys.endText() != "" {
			return wrongField
		}
	}
	return ""
}
