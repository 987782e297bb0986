package reading

import (
	"bytes"
	"iter"
	"regexp"
	"strings"
)

// transferField finds the field of a part that says how it is encoded.
var transferField = regexp.MustCompile(`(?i)content-transfer-encoding[ \t]*:[ \t]*(?:\r?\n[ \t]+)*["']?([^\s;"',]*)`)

// encodedParts are the encodings of the parts of a body, and what each is of.
func encodedParts(body []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, at := range transferField.FindAllSubmatchIndex(body, maxParts) {
			coding := strings.ToLower(string(body[at[2]:at[3]]))
			if !yield(coding, partAt(body[at[1]:])) {
				return
			}
		}
	}
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
	for _, found := range transferField.FindAllSubmatchIndex(h.kept, maxParts) {
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

// maxParts bounds the parts that are read of one body.
const maxParts = 10_000

// partAt is what comes behind the head that a text begins in, up to the next boundary.
func partAt(rest []byte) []byte {
	for _, end := range []string{"\r\n\r\n", "\n\n", "\r\r"} {
		if at := bytes.Index(rest, []byte(end)); at >= 0 {
			rest = rest[at+len(end):]
			break
		}
	}
	at := bytes.Index(rest, []byte("\n--"))
	if at < 0 {
		return rest
	}
	return bytes.TrimRight(rest[:at], "\r")
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
	for _, found := range partType.FindAllSubmatch(body, maxParts) {
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
