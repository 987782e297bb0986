package conversion

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const (
	maxDocument = 1 << 20 // bytes
	maxNodes    = 200_000 // aliases counted as often as they stand
	maxDepth    = 32
)

// loadDocument reads the one document that data has, a mapping.
func loadDocument(source string, data []byte) (*yaml.Node, error) {
	if len(data) > maxDocument {
		return nil, fault.Invalid("%s has %d bytes, and at most %d are read", source, len(data), maxDocument)
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return nil, fault.Invalid("%s is not YAML: %s", source, Clean(err.Error()))
	}
	var document, second yaml.Node
	if err := loader.Load(&document); err != nil {
		return nil, fault.Invalid("%s is not YAML: %s", source, Clean(err.Error()))
	}
	if err := loader.Load(&second); !errors.Is(err, io.EOF) {
		return nil, fault.Invalid("%s has more than one document", source)
	}
	if len(document.Content) == 0 || followAlias(document.Content[0]).Kind != yaml.MappingNode {
		return nil, fault.Invalid("%s is no policy document: it has no keys", source)
	}
	left := maxNodes
	root := followAlias(document.Content[0])
	return root, measure(source, root, 0, &left)
}

// measure refuses what costs more than its length to look at, and what means two things.
func measure(source string, n *yaml.Node, depth int, left *int) error {
	n = followAlias(n)
	if *left--; *left < 0 || depth > maxDepth {
		return fault.Invalid("%s:%d: the document is larger, or nested deeper, than any policy", source, n.Line)
	}
	if n.Kind == yaml.MappingNode {
		seen := map[string]bool{}
		for key := range pairsOf(n) {
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				return fault.Invalid("%s:%d: a key has to be a text; merge keys are not read", source, key.Line)
			}
			if seen[key.Value] {
				return fault.Invalid("%s:%d: the key %s stands twice; take one of them out", source, key.Line, Clean(key.Value))
			}
			seen[key.Value] = true
		}
	}
	for _, child := range n.Content {
		if err := measure(source, child, depth+1, left); err != nil {
			return err
		}
	}
	return nil
}

// followAlias gives what an alias stands for.
func followAlias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// pairsOf are the keys and values of a mapping.
func pairsOf(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(*yaml.Node, *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(followAlias(n.Content[i]), followAlias(n.Content[i+1])) {
				return
			}
		}
	}
}

// getValue returns a mapping's value; nil if it lacks the key, or is no mapping.
func getValue(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for key, v := range pairsOf(n) {
		if key.Value == name {
			return v
		}
	}
	return nil
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

func putValue(n *yaml.Node, key string, v *yaml.Node) {
	n.Content = append(n.Content, textNode(key), v)
}

func pairOf(key string, v *yaml.Node) *yaml.Node {
	n := mapping()
	putValue(n, key, v)
	return n
}

// textNode is a scalar that is a text to every reader.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if plain := (&yaml.Node{Kind: yaml.ScalarNode, Value: s}); plain.ShortTag() != "!!str" || policy.InYAML11(plain) != "" || strings.ContainsAny(s, ":#{}[]&*!|>'\"%@`\\,?-") || strings.TrimSpace(s) != s {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// Clean takes what draws or hides out of a text that the document's author wrote.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
}

// Refusal is why a policy that has nothing else does not load; "": it does. Its content is written as YAML.
func Refusal(keys any) string {
	data, err := yaml.Marshal(keys)
	if err != nil {
		return Clean(err.Error())
	}
	_, err = policy.Parse("it", data)
	if problems, ok := errors.AsType[policy.Problems](err); ok && len(problems) > 0 {
		return problems[0].Sentence
	}
	if err != nil {
		return Clean(err.Error())
	}
	return ""
}
