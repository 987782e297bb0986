package lockfile

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// readJSON reads one JSON value; duplicate keys are refused by the decoder.
func (b *builder) readJSON(data []byte) (*value, error) {
	r := &jsonReader{b: b, data: data, dec: jsontext.NewDecoder(bytes.NewBuffer(data)), line: 1}
	v, err := r.readValue(0)
	if err != nil {
		return nil, err
	}
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, b.wrongLine(r.lineHere(), "something follows the end of the JSON document")
	}
	return v, nil
}

// jsonReader is one pass over a document, with a line count that follows it.
type jsonReader struct {
	b    *builder
	data []byte
	dec  *jsontext.Decoder
	at   int // how far lines have been counted
	line int
}

// lineHere is the line of the token that was read last.
func (r *jsonReader) lineHere() int {
	offset := min(int(r.dec.InputOffset()), len(r.data))
	r.line += bytes.Count(r.data[r.at:offset], []byte{'\n'})
	r.at = offset
	return r.line
}

func (r *jsonReader) nextToken() (jsontext.Token, error) {
	t, err := r.dec.ReadToken()
	if err == nil {
		return t, nil
	}
	line := r.lineHere()
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset := max(r.at, min(int(syntax.ByteOffset), len(r.data)))
		line += bytes.Count(r.data[r.at:offset], []byte{'\n'})
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return t, r.b.wrongLine(line, "a key is there twice")
		}
	}
	return t, r.b.wrongLine(line, "the file is not JSON, or was cut")
}

func (r *jsonReader) readValue(depth int) (*value, error) {
	t, err := r.nextToken()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, r.b.wrongLine(r.lineHere(), "values lie more than %d deep", maxDepth)
	}
	v := &value{line: r.lineHere()}
	if err := r.b.counted(v.line); err != nil {
		return nil, err
	}
	switch t.Kind() {
	case '{':
		v.kind = mapping
	case '[':
		v.kind = list
	case '"':
		v.kind, v.text = textKind, t.String()
		return v, nil
	default:
		v.text = t.String()
		return v, nil
	}
	return v, r.fillValue(v, depth)
}

// fillValue reads what is in a mapping or list up to its end.
func (r *jsonReader) fillValue(v *value, depth int) error {
	for {
		if next := r.dec.PeekKind(); next == '}' || next == ']' {
			_, err := r.nextToken()
			return err
		}
		name := ""
		if v.kind == mapping {
			key, err := r.nextToken()
			if err != nil {
				return err
			}
			name = key.String()
		}
		item, err := r.readValue(depth + 1)
		switch {
		case err != nil:
			return err
		case v.kind == mapping:
			v.putItem(name, item)
		default:
			v.values = append(v.values, item)
		}
	}
}
