package lockfile

import (
	"bytes"
	"errors"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// readTOML reads a TOML document. The library's parser is used for its
// positions; its decoder takes quadratic time for wide tables, so the rules
// about keys and tables that occur twice are kept here.
func (b *builder) readTOML(data []byte) (*value, error) {
	if err := b.checkLines(data, maxTOMLLine); err != nil {
		return nil, err
	}
	if nodes := bytes.Count(data, []byte{','}) + bytes.Count(data, []byte{'='}) + bytes.Count(data, []byte{'['}) + bytes.Count(data, []byte{'{'}); nodes > maxTOMLNodes {
		return nil, b.wrongLine(1, "the file has more than %d values, or what could be some", maxTOMLNodes)
	}
	r := &tomlReader{b: b, data: data, line: 1, root: &value{line: 1, kind: mapping}}
	r.parser.Reset(data)
	table := r.root
	for r.parser.NextExpression() {
		next, err := r.expression(table, r.parser.Expression())
		if err != nil {
			return nil, err
		}
		table = next
	}
	if bad, ok := errors.AsType[*unstable.ParserError](r.parser.Error()); ok {
		// The parser points at a part of data, or nothing at its end.
		offset := min(max(0, cap(data)-cap(bad.Highlight)), len(data))
		if len(bad.Highlight) == 0 {
			offset = len(data)
		}
		return nil, b.wrongLine(bytes.Count(data[:offset], []byte{'\n'})+1, "the file is not TOML, or was cut")
	}
	return r.root, nil
}

// maxTOMLNodes bounds what the parser could make a value of: of an array it makes all, before anybody can
// count them. The largest real lockfiles have some hundred thousand of such.
const maxTOMLNodes = 200_000

// maxTOMLLine bounds a line in bytes; an array of files in one line is long.
const maxTOMLLine = 1 << 20

// tomlReader is one pass over a document.
type tomlReader struct {
	b      *builder
	parser unstable.Parser
	root   *value
	data   []byte
	at     int // how far lines have been counted
	line   int // of the last position that was known
}

// expression reads a line of the document and gives the table that the next
// one is in.
func (r *tomlReader) expression(table *value, n *unstable.Node) (*value, error) {
	switch n.Kind {
	case unstable.KeyValue:
		return table, r.assign(table, n, 0)
	case unstable.Table, unstable.ArrayTable:
		return r.openTable(n)
	default:
		return nil, r.b.wrongLine(r.line, "the file has something that is not understood")
	}
}

// openTable finds or makes the table that a header names.
func (r *tomlReader) openTable(n *unstable.Node) (*value, error) {
	at := r.root
	keys := n.Key()
	for depth := 0; keys.Next(); depth++ {
		key := string(keys.Node().Data)
		r.line = r.lineOf(keys.Node())
		if depth > maxDepth {
			return nil, r.deepError()
		}
		var err error
		switch {
		case !keys.IsLast():
			at, err = r.inside(at, key)
		case n.Kind == unstable.ArrayTable:
			at, err = r.element(at, key)
		default:
			at, err = r.makeTable(at, key)
		}
		if err != nil {
			return nil, err
		}
	}
	return at, nil
}

// makeTable makes the table of a header; one that only tables below it implied may
// follow them.
func (r *tomlReader) makeTable(at *value, key string) (*value, error) {
	table := at.getItem(key)
	if table == nil {
		table = &value{line: r.line, kind: mapping, from: byHeader}
		return table, r.putValue(at, key, table)
	}
	if table.kind != mapping || table.from != implied {
		return nil, r.twiceError(key)
	}
	table.from, table.line = byHeader, r.line
	return table, nil
}

// element appends a table to the list at a key.
func (r *tomlReader) element(at *value, key string) (*value, error) {
	tables := at.getItem(key)
	if tables == nil {
		tables = &value{line: r.line, kind: list, from: byHeader}
		if err := r.putValue(at, key, tables); err != nil {
			return nil, err
		}
	}
	if tables.kind != list || tables.from != byHeader {
		return nil, r.twiceError(key)
	}
	table := &value{line: r.line, kind: mapping, from: byHeader}
	tables.values = append(tables.values, table)
	return table, r.b.counted(r.line)
}

// inside is the table at a key of a header's path: the last one, if it is a list
// of tables.
func (r *tomlReader) inside(at *value, key string) (*value, error) {
	next := at.getItem(key)
	if next == nil {
		next = &value{line: r.line, kind: mapping, from: implied}
		return next, r.putValue(at, key, next)
	}
	if next.kind == list && next.from == byHeader {
		next = next.values[len(next.values)-1]
	}
	if next.kind != mapping || next.from == inline {
		return nil, r.twiceError(key)
	}
	return next, nil
}

// assign reads "key = value", where the key may have dots.
func (r *tomlReader) assign(table *value, n *unstable.Node, depth int) error {
	keys := n.Key()
	for ; keys.Next(); depth++ {
		key := string(keys.Node().Data)
		r.line = r.lineOf(keys.Node())
		if depth > maxDepth {
			return r.deepError()
		}
		next := table.getItem(key)
		switch {
		case keys.IsLast() && next != nil, next != nil && next.from != byDots:
			return r.twiceError(key)
		case keys.IsLast():
			v, err := r.readValue(n.Value(), depth)
			if err != nil {
				return err
			}
			return r.putValue(table, key, v)
		case next == nil:
			next = &value{line: r.line, kind: mapping, from: byDots}
			if err := r.putValue(table, key, next); err != nil {
				return err
			}
		}
		table = next
	}
	return nil
}

func (r *tomlReader) putValue(table *value, key string, v *value) error {
	table.putItem(key, v)
	return r.b.counted(r.line)
}

func (r *tomlReader) readValue(n *unstable.Node, depth int) (*value, error) {
	if depth > maxDepth {
		return nil, r.deepError()
	}
	switch n.Kind {
	case unstable.Array:
		return r.readArray(n, depth)
	case unstable.InlineTable:
		v := &value{line: r.line, kind: mapping, from: inline}
		children := n.Children()
		for children.Next() {
			if err := r.assign(v, children.Node(), depth+1); err != nil {
				return nil, err
			}
		}
		return v, nil
	case unstable.String:
		r.line = r.lineOf(n)
		return &value{line: r.line, kind: textKind, text: string(n.Data)}, nil
	default: // numbers, booleans, times
		return &value{line: r.line, kind: scalar, text: string(n.Data)}, nil
	}
}

func (r *tomlReader) readArray(n *unstable.Node, depth int) (*value, error) {
	v := &value{line: r.line, kind: list, from: inline}
	children := n.Children()
	for children.Next() {
		item, err := r.readValue(children.Node(), depth+1)
		if err != nil {
			return nil, err
		}
		if item.kind == mapping && len(item.values) > 0 {
			item.line = item.values[0].line
		}
		v.values = append(v.values, item)
		if err := r.b.counted(r.line); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (r *tomlReader) twiceError(key string) error {
	return r.b.wrongLine(r.line, "the key or table %q is there twice", text.Shorten(key, maxQuoted))
}

func (r *tomlReader) deepError() error {
	return r.b.wrongLine(r.line, "values lie more than %d deep", maxDepth)
}

// lineOf is the line of a node, or the last one that was known: not every node
// has a position. Nodes are visited in the order of the text.
func (r *tomlReader) lineOf(n *unstable.Node) int {
	if offset := int(n.Raw.Offset); n.Raw.Length > 0 && offset > r.at {
		r.line += bytes.Count(r.data[r.at:offset], []byte{'\n'})
		r.at = offset
	}
	return r.line
}
