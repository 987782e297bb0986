package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Bounds of a text that is read.
const (
	mostBytes = 1 << 20
	mostDepth = 64
)

// jsonKind is a value's in JSON.
type jsonKind string

const (
	object   jsonKind = "an object"
	array    jsonKind = "a list"
	textKind jsonKind = "a text"
	number   jsonKind = "a number"
	boolean  jsonKind = "true or false"
	null     jsonKind = "null"
)

// node is a value, with where it stands.
type node struct {
	line, column int
	kind         jsonKind
	text         string  // of a text; of a number or a word as it was written
	keys         []*node // of an object, in the order of the text
	items        []*node // the values of keys, or a list's elements
}

// members are an object's keys and values.
func (n *node) members() iter.Seq2[*node, *node] {
	return func(yield func(*node, *node) bool) {
		if n == nil || n.kind != object {
			return
		}
		for i, key := range n.keys {
			if !yield(key, n.items[i]) {
				return
			}
		}
	}
}

// getValue returns an object's value; nil: it has none.
func (n *node) getValue(name string) *node {
	for key, value := range n.members() {
		if key.text == name {
			return value
		}
	}
	return nil
}

// jsoncReader reads JSON with comments, and commas behind the last of a list.
type jsoncReader struct {
	source    string
	data      []byte
	at        int
	line      int
	lineStart int // where the line begins
}

// syntaxError is what is wrong, and where.
type syntaxError struct{ error }

// parseText reads a text. An error is fault.ErrInvalid with line and column.
func parseText(source string, data []byte) (n *node, err error) {
	if len(data) > mostBytes {
		return nil, fault.Invalid("%s has %d bytes, and at most %d are read", source, len(data), mostBytes)
	}
	r := &jsoncReader{source: source, data: bytes.TrimPrefix(data, []byte("\ufeff")), line: 1}
	defer func() {
		if found := recover(); found != nil {
			wrong, ok := found.(syntaxError)
			if !ok {
				panic(found)
			}
			n, err = nil, wrong.error
		}
	}()
	n = r.readValue(0)
	if r.skipSpace(); r.at < len(r.data) {
		r.failHere("there is something behind the end")
	}
	return n, nil
}

// failHere ends the reading.
func (r *jsoncReader) failHere(format string, args ...any) {
	line, column := r.placeHere()
	panic(syntaxError{fault.Invalid("%s:%d:%d: %s", r.source, line, column, fmt.Sprintf(format, args...))})
}

func (r *jsoncReader) placeHere() (line, column int) {
	return r.line, utf8.RuneCount(r.data[r.lineStart:min(r.at, len(r.data))]) + 1
}

// peekByte is the next byte; 0 at the end, and for a zero, which JSON has nowhere.
func (r *jsoncReader) peekByte() byte {
	if r.at < len(r.data) {
		return r.data[r.at]
	}
	return 0
}

// skipSpace goes over space and comments.
func (r *jsoncReader) skipSpace() {
	for r.at < len(r.data) {
		switch c := r.data[r.at]; {
		case c == '\n':
			r.at++
			r.line, r.lineStart = r.line+1, r.at
		case c == ' ' || c == '\t' || c == '\r':
			r.at++
		case bytes.HasPrefix(r.data[r.at:], []byte("//")):
			for r.at < len(r.data) && r.data[r.at] != '\n' {
				r.at++
			}
		case bytes.HasPrefix(r.data[r.at:], []byte("/*")):
			r.comment()
		default:
			return
		}
	}
}

func (r *jsoncReader) comment() {
	end := bytes.Index(r.data[r.at+2:], []byte("*/"))
	if end < 0 {
		r.failHere("the comment has no end; write */ behind it")
	}
	for stop := r.at + 2 + end + 2; r.at < stop; r.at++ {
		if r.data[r.at] == '\n' {
			r.line, r.lineStart = r.line+1, r.at+1
		}
	}
}

func (r *jsoncReader) readValue(depth int) *node {
	r.skipSpace()
	n := &node{}
	n.line, n.column = r.placeHere()
	if depth > mostDepth {
		r.failHere("it is nested deeper than %d", mostDepth)
	}
	switch c := r.peekByte(); {
	case c == '{':
		n.kind = object
		r.object(n, depth)
	case c == '[':
		n.kind = array
		r.readList(']', func() { n.items = append(n.items, r.readValue(depth+1)) })
	case c == '"':
		n.kind, n.text = textKind, r.string()
	case r.at == len(r.data):
		r.failHere("a value is missing at the end")
	default:
		r.readWord(n)
	}
	return n
}

// readList reads elements up to its end, of which the last may have a comma behind it.
func (r *jsoncReader) readList(end byte, element func()) {
	r.at++
	for {
		r.skipSpace()
		if r.peekByte() == end {
			r.at++
			return
		}
		element()
		r.skipSpace()
		switch r.peekByte() {
		case ',':
			r.at++
		case end:
		default:
			r.failHere("there has to be a comma or %c here", end)
		}
	}
}

func (r *jsoncReader) object(n *node, depth int) {
	seen := map[string]int{}
	r.readList('}', func() {
		key := &node{kind: textKind}
		key.line, key.column = r.placeHere()
		if r.peekByte() != '"' {
			r.failHere("there has to be a key in double quotes here")
		}
		at := r.at
		key.text = r.string()
		if line, twice := seen[key.text]; twice {
			r.at = at
			r.failHere("the key %q is on line %d already; take one of them out", clipText(key.text), line)
		}
		seen[key.text] = key.line
		if r.skipSpace(); r.peekByte() != ':' {
			r.failHere("there has to be a colon behind the key")
		}
		r.at++
		n.keys = append(n.keys, key)
		n.items = append(n.items, r.readValue(depth+1))
	})
}

// string reads a text, which stands on one line.
func (r *jsoncReader) string() string {
	begin := r.at
	for r.at++; r.at < len(r.data); r.at++ {
		switch c := r.data[r.at]; {
		case c == '\\':
			r.at++
		case c < ' ':
			r.failHere("a text can't have this character; write it as \\u%04x, or end the text with a double quote", c)
		case c == '"':
			r.at++
			raw := r.data[begin:r.at]
			var s string
			if !utf8.Valid(raw) || json.Unmarshal(raw, &s) != nil {
				r.at = begin
				r.failHere("this text has a wrong escape, or is not UTF-8")
			}
			return s
		}
	}
	r.at = begin
	r.failHere("this text has no end; write a double quote behind it")
	return ""
}

var (
	wordForm   = regexp.MustCompile(`^[-+.0-9A-Za-z_]+`)
	numberForm = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$`)
)

// readWord reads what is no text, list or object.
func (r *jsoncReader) readWord(n *node) {
	n.text = string(wordForm.Find(r.data[r.at:]))
	switch {
	case n.text == "true" || n.text == "false":
		n.kind = boolean
	case n.text == "null":
		n.kind = null
	case numberForm.MatchString(n.text):
		n.kind = number
	case n.text == "":
		r.failHere("there has to be a value here")
	default:
		r.failHere("%q is no value; a text stands in double quotes", clipText(n.text))
	}
	r.at += len(n.text)
}
