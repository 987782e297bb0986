package lockfile

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Bounds of a document: its bytes, and what the library could make a value of. The library takes some two
// hundred bytes for each, before anybody can count them. The largest real lockfiles have two million bytes, and
// about a hundred thousand of such.
const (
	maxYAML      = 6 << 20
	maxYAMLNodes = 160_000
)

// readYAML reads at most so many YAML documents of plain mappings, lists and scalars, and one at least;
// anchors, aliases, tags and merged keys make it mean what it does not show.
func (b *builder) readYAML(data []byte, most int) (documents []*value, err error) {
	if len(data) > maxYAML {
		return nil, b.wrongLine(1, "the file has %d bytes; a lockfile in YAML may have %d", len(data), maxYAML)
	}
	if err := b.checkLines(data, maxLine); err != nil {
		return nil, err
	}
	if mostNodes(data) > maxYAMLNodes {
		return nil, b.wrongLine(1, "the file has more than %d values, or what could be some", maxYAMLNodes)
	}
	// Keys that occur twice are found below; the library takes quadratic time.
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithUniqueKeys(false))
	if err != nil {
		return nil, b.wrongLine(1, "the file is not YAML")
	}
	for {
		var document yaml.Node
		err := loader.Load(&document)
		switch {
		case errors.Is(err, io.EOF) && len(documents) > 0:
			return documents, nil
		case err != nil:
			return nil, b.badYAML(err)
		case len(documents) == most:
			return nil, b.wrongLine(max(document.Line, 1), "the file has more than %d YAML documents", most)
		case document.Kind != yaml.DocumentNode || len(document.Content) != 1:
			return nil, b.wrongLine(1, "the file is empty")
		}
		root, err := b.fromYAML(document.Content[0], 0)
		if err != nil {
			return nil, err
		}
		documents = append(documents, root)
	}
}

// mostNodes is at least how many values the library makes of a document, by what YAML has between them:
// a dash before an item, a colon behind a key, a question mark before one, and in brackets commas. The
// parts of a value are counted as well.
func mostNodes(data []byte) int {
	n := 2 // the document, and its value
	for i, c := range data {
		switch c {
		case ':', '?': // a key and its value
			n += 2
		case ',', '[', '{':
			n++
		case '-':
			if i+1 == len(data) || bytes.IndexByte([]byte(" \t\r\n"), data[i+1]) >= 0 {
				n++
			}
		}
	}
	return n
}

func (b *builder) badYAML(err error) error {
	if load, ok := errors.AsType[*yaml.LoadError](err); ok {
		return b.wrongLine(max(load.Mark.Line, 1), "the file is not YAML, or was cut")
	}
	return b.wrongLine(1, "the file is not YAML, or is empty")
}

func (b *builder) fromYAML(n *yaml.Node, depth int) (*value, error) {
	if depth > maxDepth {
		return nil, b.wrongLine(n.Line, "values lie more than %d deep", maxDepth)
	}
	if n.Anchor != "" || n.Kind == yaml.AliasNode || n.Style&yaml.TaggedStyle != 0 {
		return nil, b.wrongLine(n.Line, "anchors, aliases and tags are not read; write the value out")
	}
	v := &value{line: n.Line}
	if err := b.counted(n.Line); err != nil {
		return nil, err
	}
	switch n.Kind {
	case yaml.ScalarNode:
		v.text = n.Value
		if n.ShortTag() == "!!str" {
			v.kind = textKind
		}
		return v, nil
	case yaml.SequenceNode:
		v.kind = list
		return v, b.readItemsYAML(v, n.Content, depth)
	case yaml.MappingNode:
		v.kind = mapping
		return v, b.readFieldsYAML(v, n.Content, depth)
	default:
		return nil, b.wrongLine(n.Line, "the file has something that is neither a mapping, a list nor a value")
	}
}

func (b *builder) readItemsYAML(v *value, items []*yaml.Node, depth int) error {
	for _, item := range items {
		child, err := b.fromYAML(item, depth+1)
		if err != nil {
			return err
		}
		item.Content = nil // it may be large, and is not needed any more
		v.values = append(v.values, child)
	}
	return nil
}

func (b *builder) readFieldsYAML(v *value, content []*yaml.Node, depth int) error {
	seen := make(map[string]bool, len(content)/2)
	for pair := range slices.Chunk(content, 2) {
		key := pair[0]
		if len(pair) != 2 || key.Kind != yaml.ScalarNode || key.Anchor != "" || key.Style&yaml.TaggedStyle != 0 || key.ShortTag() == "!!merge" {
			return b.wrongLine(key.Line, "a key must be a plain string")
		}
		if seen[key.Value] {
			return b.wrongLine(key.Line, "the key %q is there twice", text.Shorten(key.Value, maxQuoted))
		}
		seen[key.Value] = true
		child, err := b.fromYAML(pair[1], depth+1)
		if err != nil {
			return err
		}
		pair[1].Content = nil
		child.line = key.Line
		v.putItem(key.Value, child)
	}
	return nil
}
