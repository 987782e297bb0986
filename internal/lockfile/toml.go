package lockfile

import (
	"bytes"
	"errors"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// readTOML reads a TOML document. The library decodes it once for its rules
// (keys that occur twice, tables that are defined twice); its parser, which has
// positions, is then walked for the values.
func (b *builder) readTOML(data []byte) (*value, error) {
	var checked map[string]any
	if err := toml.Unmarshal(data, &checked); err != nil {
		line := 1
		if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ = bad.Position()
		}
		return nil, b.wrong(line, "the file is not TOML, was cut, or has a key twice")
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
	if r.parser.Error() != nil {
		return nil, b.wrong(1, "the file is not TOML")
	}
	return r.root, nil
}

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
	case unstable.Table:
		return r.open(n, false)
	case unstable.ArrayTable:
		return r.open(n, true)
	}
	return nil, r.b.wrong(r.line, "the file has something that is not understood")
}

// open finds or makes the table that a header names.
func (r *tomlReader) open(n *unstable.Node, element bool) (*value, error) {
	at := r.root
	keys := n.Key()
	for keys.Next() {
		key := keys.Node()
		r.line = r.lineOf(key)
		if element && keys.IsLast() {
			return r.element(at, string(key.Data))
		}
		next, err := r.inside(at, string(key.Data))
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// element appends a table to the list at a key.
func (r *tomlReader) element(at *value, key string) (*value, error) {
	tables := at.get(key)
	if tables == nil {
		tables = &value{line: r.line, kind: list}
		at.put(key, tables)
	}
	if tables.kind != list {
		return nil, r.b.wrong(r.line, "the key %q is there twice", clip(key))
	}
	table := &value{line: r.line, kind: mapping}
	tables.values = append(tables.values, table)
	return table, nil
}

// inside is the table at a key: the last one, if it is a list of tables.
func (r *tomlReader) inside(at *value, key string) (*value, error) {
	next := at.get(key)
	if next == nil {
		next = &value{line: r.line, kind: mapping}
		at.put(key, next)
	}
	if next.kind == list && len(next.values) > 0 {
		next = next.values[len(next.values)-1]
	}
	if next.kind != mapping {
		return nil, r.b.wrong(r.line, "the key %q is there twice", clip(key))
	}
	return next, nil
}

// assign reads "key = value", where the key may have dots.
func (r *tomlReader) assign(table *value, n *unstable.Node, depth int) error {
	keys := n.Key()
	for keys.Next() {
		key := string(keys.Node().Data)
		r.line = r.lineOf(keys.Node())
		if !keys.IsLast() {
			next, err := r.inside(table, key)
			if err != nil {
				return err
			}
			table = next
			continue
		}
		if table.get(key) != nil {
			return r.b.wrong(r.line, "the key %q is there twice", clip(key))
		}
		v, err := r.value(n.Value(), depth)
		if err != nil {
			return err
		}
		table.put(key, v)
	}
	return nil
}

func (r *tomlReader) value(n *unstable.Node, depth int) (*value, error) {
	if depth > maxDepth {
		return nil, r.b.wrong(r.line, "values lie more than %d deep", maxDepth)
	}
	switch n.Kind {
	case unstable.Array:
		return r.array(n, depth)
	case unstable.InlineTable:
		v := &value{line: r.line, kind: mapping}
		children := n.Children()
		for children.Next() {
			if err := r.assign(v, children.Node(), depth+1); err != nil {
				return nil, err
			}
		}
		return v, nil
	case unstable.String:
		r.line = r.lineOf(n)
		return &value{line: r.line, kind: text, text: string(n.Data)}, nil
	}
	return &value{line: r.line, kind: scalar, text: string(n.Data)}, nil
}

func (r *tomlReader) array(n *unstable.Node, depth int) (*value, error) {
	v := &value{line: r.line, kind: list}
	children := n.Children()
	for children.Next() {
		if children.Node().Kind == unstable.Comment {
			continue
		}
		item, err := r.value(children.Node(), depth+1)
		if err != nil {
			return nil, err
		}
		if item.kind == mapping && len(item.values) > 0 {
			item.line = item.values[0].line
		}
		v.values = append(v.values, item)
	}
	return v, nil
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
