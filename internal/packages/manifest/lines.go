package manifest

import (
	"iter"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ends are what ends a line for one of the clients at least, beside a line feed: npm takes a carriage return for one, and pip what Python
// does. A comment hides no line that one of them reads.
const ends = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"

// escaped is a character as JSON, TOML and YAML write it in quotes, if they don't as itself.
var escaped = regexp.MustCompile(`\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|["/\\])`)

// withoutEscapes is a text with the characters that are written as escapes, in as many lines.
func withoutEscapes(data []byte) []byte {
	return escaped.ReplaceAllFunc(data, func(one []byte) []byte {
		if len(one) == 2 {
			return one[1:]
		}
		code, err := strconv.ParseUint(string(one[2:]), 16, 32)
		if err != nil || code < ' ' || code > unicode.MaxRune {
			return one
		}
		return utf8.AppendRune(nil, rune(code))
	})
}

// Lines are a text's, without their ends, each with its number as editors count.
func (t Text) Lines() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		number := 0
		for line := range strings.Lines(string(t.Data)) {
			number++
			line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
			for end := strings.IndexAny(line, ends); end >= 0; end = strings.IndexAny(line, ends) {
				if !yield(number, line[:end]) {
					return
				}
				_, width := utf8.DecodeRuneInString(line[end:])
				line = line[end+width:]
			}
			if !yield(number, line) {
				return
			}
		}
	}
}

// Sign finds in a line by which a client asks another registry, and gives the words that say so; "": none do.
type Sign func(line string) (found string)

// Search withholds all names for each line of a file that has a sign by which a client asks another registry, and for a file that can't
// be read. Comments behind # that are a line of their own are not looked at; lines that a backslash joins are one. Without such a file there is nothing to withhold.
func (w *Wants) Search(file string, sign Sign) {
	data, behind, err := w.fetch(file)
	if behind {
		return
	}
	if err != nil {
		w.Withhold(file, 0, "", "it can't be read, and may name a registry: "+err.Error())
		return
	}
	if text, err := Decode(data); err == nil {
		data = text
	}
	w.SearchText(Text{File: file, Data: data}, sign)
}

// SearchText searches, as Search does, in a manifest that is read otherwise, too.
func (w *Wants) SearchText(m Text, sign Sign) {
	var open strings.Builder // what a backslash joins, as in shells
	first := 0
	look := func() {
		if found := sign(open.String()); found != "" {
			w.Withhold(m.File, first, strings.TrimSpace(found), "it may have a client ask another registry")
		}
		open.Reset()
	}
	for number, line := range m.Lines() {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue // among joined lines, too
		}
		if open.Len() == 0 {
			first = number
		}
		line, more := strings.CutSuffix(line, `\`)
		open.WriteString(line)
		if more {
			open.WriteByte(' ')
			continue
		}
		look()
	}
	look()
}

// NamesRegistry tells whether a setting's key looks like one that names a registry, or a file in which one is named.
func NamesRegistry(key string) bool {
	if inKey.MatchString(key) {
		return true
	}
	for _, word := range wordsOf(key) {
		switch word {
		case "url", "urls", "source", "sources", "links":
			return true
		}
	}
	return false
}

var inKey = regexp.MustCompile(`(?i)regist|index|find[-_]?links|mirror|userconfig|globalconfig|npmrc|yarnrc`)

// wordsOf are a key's, in small letters: find-links, findLinks and find_links have two.
func wordsOf(key string) []string {
	var spaced strings.Builder
	last := rune(0)
	for _, c := range key {
		if unicode.IsUpper(c) && unicode.IsLower(last) {
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(unicode.ToLower(c))
		last = c
	}
	return strings.FieldsFunc(spaced.String(), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}

// isWord tells whether a byte is of a word, as names of packages and keys are.
func isWord(b byte) bool {
	return b == '_' || b == '-' || b == '/' || b == '@' || b >= utf8.RuneSelf || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}
