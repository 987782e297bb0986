package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// editJSON puts a member into a document, or takes it out (nil), and leaves every other byte
// as it is. An empty document is an empty object. Text that is no plain JSON is refused.
func editJSON(before []byte, at func(map[string]any) []string, entry any) ([]byte, error) {
	text := before
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	document, err := readJSONObject(text)
	if err != nil {
		return nil, err
	}
	path := at(document)
	if have, has := memberOf(document, path); !has && entry == nil || has && entry != nil && sameJSON(have, entry) {
		return before, nil
	}
	after, err := spliceJSON(text, path, entry)
	if err != nil {
		return nil, err
	}
	return after, sameButFor(document, after, path, readJSONObject)
}

// readJSONObject reads strictly: no member twice, nothing behind the object.
func readJSONObject(text []byte) (map[string]any, error) {
	in := jsontext.NewDecoder(bytes.NewReader(text))
	value, err := in.ReadValue()
	if err == nil {
		value = bytes.Clone(value) // the decoder's own
		_, err = in.ReadToken()
	}
	if !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("something follows the object")
		}
		return nil, fmt.Errorf("it is no plain JSON, without comments and with each member once (%w); add the server by hand", err)
	}
	var document map[string]any
	if err := json.Unmarshal(value, &document); err != nil || document == nil {
		return nil, errors.New("it is no JSON object; add the server by hand")
	}
	return document, nil
}

func memberOf(document map[string]any, path []string) (value any, has bool) {
	for _, name := range path[:len(path)-1] {
		document, _ = document[name].(map[string]any)
	}
	value, has = document[path[len(path)-1]]
	return value, has
}

// sameJSON tells whether a value that was read is what another is written as.
func sameJSON(have, entry any) bool {
	data, err := json.Marshal(entry)
	if err != nil {
		return false
	}
	var want any
	return json.Unmarshal(data, &want) == nil && reflect.DeepEqual(have, want)
}

// sameButFor refuses an edit that changed anything but the member.
func sameButFor(before map[string]any, after []byte, path []string, read func([]byte) (map[string]any, error)) error {
	now, err := read(after)
	if err != nil {
		return fmt.Errorf("it can't be changed safely (%w); add the server by hand", err)
	}
	if !reflect.DeepEqual(withoutMember(before, path), withoutMember(now, path)) {
		return errors.New("it can't be changed without changing something else; add the server by hand")
	}
	return nil
}

// withoutMember is a copy of the objects on the path, without the member and without those that
// have nothing left.
func withoutMember(document map[string]any, path []string) map[string]any {
	out := maps.Clone(document)
	if len(path) == 1 {
		delete(out, path[0])
		return out
	}
	if inner, ok := out[path[0]].(map[string]any); ok {
		if rest := withoutMember(inner, path[1:]); len(rest) > 0 {
			out[path[0]] = rest
		} else {
			delete(out, path[0])
		}
	}
	return out
}

// memberPlace is where a member stands in a text, or would.
type memberPlace struct {
	found      bool
	start, end int // of its value
	after      int // the end of the value before it; or of what opens the object
	open       int // behind the brace that opens the object
	shut       int // of the brace that closes it
	others     bool
}

// findMember looks for a member of the object that begins at from.
func findMember(text []byte, from int, name string) (memberPlace, error) {
	in := jsontext.NewDecoder(bytes.NewReader(text[from:]))
	if kind := in.PeekKind(); kind != '{' {
		return memberPlace{}, fmt.Errorf("what should hold %q is no object; add the server by hand", name)
	}
	if _, err := in.ReadToken(); err != nil {
		return memberPlace{}, err
	}
	at := func() int { return from + int(in.InputOffset()) }
	p := memberPlace{open: at()}
	last := p.open
	for in.PeekKind() != '}' {
		member, err := in.ReadToken()
		if err != nil {
			return memberPlace{}, err
		}
		key := member.String()
		value, err := in.ReadValue()
		if err != nil {
			return memberPlace{}, err
		}
		if key == name {
			p.found, p.start, p.end, p.after = true, at()-len(value), at(), last
		} else {
			p.others = true
		}
		last = at()
	}
	if !p.found {
		p.after = last
	}
	if _, err := in.ReadToken(); err != nil {
		return memberPlace{}, err
	}
	p.shut = at() - 1
	return p, nil
}

// spliceJSON changes the text.
func spliceJSON(text []byte, path []string, entry any) ([]byte, error) {
	from, depth := 0, 0
	var p memberPlace
	var err error
	for depth = range path {
		if p, err = findMember(text, from, path[depth]); err != nil {
			return nil, err
		}
		if !p.found {
			break
		}
		from = p.start
	}
	if entry == nil {
		return splice(text, p.cutMember(text)), nil
	}
	unit := indentOf(text)
	value := entry
	for i := len(path) - 1; i > depth; i-- { // the objects that are not there yet
		value = map[string]any{path[i]: value}
	}
	prefix := strings.Repeat(unit, depth+1)
	data, err := marshalIndent(value, prefix, unit)
	if err != nil {
		return nil, err
	}
	if p.found {
		return splice(text, change{p.start, p.end, string(data)}), nil
	}
	name, err := json.Marshal(path[depth])
	if err != nil {
		return nil, err
	}
	member := "\n" + prefix + string(name) + ": " + string(data)
	if p.others {
		return splice(text, change{p.after, p.after, "," + member}), nil
	}
	return splice(text, change{p.open, p.shut, member + "\n" + strings.Repeat(unit, depth)}), nil
}

// change replaces a part of a text.
type change struct {
	from, to int
	by       string
}

func splice(text []byte, c change) []byte {
	return bytes.Join([][]byte{text[:c.from], []byte(c.by), text[c.to:]}, nil)
}

// cutMember takes the member out, with the comma that is then too many.
func (p memberPlace) cutMember(text []byte) change {
	if !p.others {
		return change{p.open, p.shut, ""}
	}
	if p.after > p.open { // one stands before it, with a comma behind
		return change{p.after, p.end, ""}
	}
	comma := p.end + bytes.IndexByte(text[p.end:], ',') + 1
	return change{p.open, comma, ""}
}

// indentOf returns by what the text indents: two spaces, unless it says otherwise.
func indentOf(text []byte) string {
	for line := range bytes.Lines(text) {
		if rest := bytes.TrimLeft(line, " \t"); len(rest) < len(line) && len(rest) > 0 && rest[0] == '"' {
			return string(line[:len(line)-len(rest)])
		}
	}
	return "  "
}

func marshalIndent(value any, prefix, unit string) ([]byte, error) {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent(prefix, unit)
	err := out.Encode(value)
	return bytes.TrimSpace(b.Bytes()), err
}
