package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

const maxText = 2000 // bytes of one text value

// compiler reads a document's nodes into a Policy and collects what is wrong
// and what each key means. It goes on after a problem, so that all are told.
type compiler struct {
	source   string
	policy   *Policy
	problems Problems
	claims   map[string]value // what is said once only -> where
	steps    int              // of all rules' expressions

	injections    *injections // of the document's credentials; nil: it has none
	scansRequests *value      // where the document asks for it; nil: it does not
}

// value is a node, the path of keys to it, and where its key is (for a list's
// element, where the element is).
type value struct {
	node *yaml.Node
	path string
	key  *yaml.Node
}

// object is a mapping whose keys are all known and distinct.
type object struct {
	value
	fields map[string]value
}

func (c *compiler) failAt(n *yaml.Node, format string, args ...any) {
	if len(c.problems) < 10*maxProblems {
		c.problems = append(c.problems, Problem{c.source, n.Line, n.Column, fmt.Sprintf(format, args...)})
	}
}

// object reads a mapping; nil if it is none. Unknown and repeated keys are
// problems, and are left out.
func (c *compiler) object(v value, known ...string) *object {
	if v.node.Kind != yaml.MappingNode {
		c.failAt(v.node, "%s must be a mapping of keys, and is %s", v.path, nodeKind(v.node))
		return nil
	}
	o := &object{value: v, fields: make(map[string]value, len(v.node.Content)/2)}
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key, node := v.node.Content[i], v.node.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
			c.failAt(key, "a key must be text, and this is %s", nodeKind(key))
			continue
		}
		path := key.Value
		if v.path != "" && v.path != rootPath {
			path = v.path + "." + key.Value
		}
		if before, twice := o.fields[key.Value]; twice {
			c.failAt(key, "the key %s is already on line %d", plainASCII(path, 80), before.key.Line)
			continue
		}
		if !slices.Contains(known, key.Value) {
			c.failAt(key, "unknown key %s%s", plainASCII(path, 80), suggestKey(key.Value, known))
			continue
		}
		o.fields[key.Value] = value{node, path, key}
	}
	return o
}

// rootPath stands for the whole document in messages.
const rootPath = "a policy"

func suggestKey(key string, known []string) string {
	for _, k := range known {
		if distance(strings.ToLower(strings.ReplaceAll(key, "-", "_")), k) <= 2 {
			return "; did you mean " + k + "?"
		}
	}
	return "; known here: " + strings.Join(known, ", ")
}

// distance is the Levenshtein distance, up to a length that keys have.
func distance(a, b string) int {
	if len(a) > 40 || len(b) > 40 {
		return 40
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// readList reads a sequence's elements; ok is false if it is none.
func (c *compiler) readList(v value) (elements []value, ok bool) {
	if v.node.Kind != yaml.SequenceNode {
		c.failAt(v.node, "%s must be a list, and is %s", v.path, nodeKind(v.node))
		return nil, false
	}
	for i, n := range v.node.Content {
		elements = append(elements, value{n, fmt.Sprintf("%s[%d]", v.path, i), n})
	}
	return elements, true
}

// readText reads a non-empty text. What YAML takes for a number, a date or a
// boolean is not text until it is quoted: 1.10 would otherwise be 1.1. Nor is
// what only YAML 1.1 takes for one: agent-sandbox policies are read by it elsewhere.
func (c *compiler) readText(v value) (string, bool) {
	if what := inYAML11(v.node); what != "" {
		c.failAt(v.node, "%s must be text, and is %s in YAML 1.1; quote it: \"%s\"", v.path, what, plainASCII(v.node.Value, 40))
		return "", false
	}
	return c.scalar(v)
}

func (c *compiler) scalar(v value) (string, bool) {
	n := v.node
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		hint := ""
		if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" {
			hint = fmt.Sprintf("; quote it: \"%s\"", plainASCII(n.Value, 40))
		}
		c.failAt(n, "%s must be text, and is %s%s", v.path, nodeKind(n), hint)
		return "", false
	}
	if n.Value == "" {
		c.failAt(n, "%s is an empty text; write a value or leave the key out", v.path)
		return "", false
	}
	if len(n.Value) > maxText {
		c.failAt(n, "%s has %d bytes, and at most %d are read", v.path, len(n.Value), maxText)
		return "", false
	}
	return n.Value, true
}

// readWord reads one of a few words.
func (c *compiler) readWord(v value, allowed ...string) (string, bool) {
	s, ok := c.scalar(v)
	if ok && !slices.Contains(allowed, s) {
		c.failAt(v.node, "%s must be %s, and is %q", v.path, alternatives(allowed), plainASCII(s, 40))
		return "", false
	}
	return s, ok
}

func alternatives(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func (c *compiler) boolean(v value) (is, ok bool) {
	n := v.node
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" {
		switch n.Value {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	c.failAt(n, "%s must be true or false, and is %s", v.path, nodeKind(n))
	return false, false
}

// readNumber reads a finite plain decimal number from least to most.
func (c *compiler) readNumber(v value, least, most float64) (float64, bool) {
	n := v.node
	if n.Kind != yaml.ScalarNode || (n.ShortTag() != "!!int" && n.ShortTag() != "!!float") {
		c.failAt(n, "%s must be a number, and is %s", v.path, nodeKind(n))
		return 0, false
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.Trim(n.Value, "0123456789.+-eE") != "" {
		c.failAt(n, "%s must be a plain decimal number, and is %q", v.path, plainASCII(n.Value, 40))
		return 0, false
	}
	if leadingZero(n.Value) {
		c.failAt(n, "%s begins with a zero, and %q is octal in YAML 1.1; write it without", v.path, plainASCII(n.Value, 40))
		return 0, false
	}
	if f < least || f > most {
		c.failAt(n, "%s must be from %v to %v, and is %v", v.path, least, most, f)
		return 0, false
	}
	return f, true
}

func (c *compiler) integer(v value, least, most int64) (int64, bool) {
	f, ok := c.readNumber(v, float64(least), float64(most))
	if ok && f != math.Trunc(f) {
		c.failAt(v.node, "%s must be a whole number, and is %v", v.path, f)
		return 0, false
	}
	return int64(f), ok
}

// isNull accepts an agent-sandbox policy's way of writing "not set".
func isNull(v value) bool {
	return v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!null"
}

func nodeKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!null":
			return "empty"
		case "!!int", "!!float":
			return "a number"
		case "!!bool":
			return "true or false"
		case "!!timestamp":
			return "a date"
		case "!!str":
			return "text"
		}
	case yaml.DocumentNode, yaml.AliasNode, yaml.StreamNode:
	}
	return "something else"
}

// claimThing notes that a thing is said, and refuses saying it in a second form.
func (c *compiler) claimThing(thing string, v value) bool {
	if before, said := c.claims[thing]; said {
		c.failAt(v.key, "%s says the same as %s on line %d; keep one of them", v.path, before.path, before.key.Line)
		return false
	}
	c.claims[thing] = v
	return true
}

// explainEnforced explains an enforced key; open explains one that this version does not
// enforce, and what therefore stays closed.
func (c *compiler) explainEnforced(v value, format string, args ...any) {
	c.explainKey(v, true, format, args...)
}

func (c *compiler) explainOpen(v value, format string, args ...any) {
	c.explainKey(v, false, format, args...)
}

func (c *compiler) explainKey(v value, enforced bool, format string, args ...any) {
	line, column := 0, 0
	if v.key != nil {
		line, column = v.key.Line, v.key.Column
	}
	c.policy.explanations = append(c.policy.explanations,
		Explanation{Line: line, Column: column, Key: v.path, Meaning: fmt.Sprintf(format, args...), Enforced: enforced})
}
