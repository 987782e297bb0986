package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// places tells of a configuration file's text where a key is, and which key is where. Its zero value knows nothing.
type places struct{ root *yaml.Node }

// placesOf is of a text that may be no YAML; then it knows nothing.
func placesOf(text []byte) places {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil || len(document.Content) == 0 {
		return places{}
	}
	return places{root: document.Content[0]}
}

// keyPath is the key at the beginning of a sentence about it, such as pool[0].size.
var keyPath = regexp.MustCompile(`^[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*|\[[0-9]+\])*`)

// place puts where it is in the file before a sentence that begins with a key: where the deepest part of that key
// is that is there.
func (p places) place(sentence string) string {
	if p.root == nil {
		return sentence
	}
	at := p.root
	for _, step := range steps(keyPath.FindString(sentence)) {
		below := childOf(at, step)
		if below == nil {
			break
		}
		at = below
	}
	if at == p.root {
		return sentence
	}
	return fmt.Sprintf("line %d, column %d: %s", at.Line, at.Column, sentence)
}

// placeAll places each line of an error's text, as one sentence after the other.
func (p places) placeAll(err error) error {
	var all []string
	for sentence := range strings.Lines(err.Error()) {
		all = append(all, p.place(strings.TrimSpace(sentence)))
	}
	return placed{error: err, text: strings.Join(all, "; ")}
}

// placed is an error with the places of what it is about.
type placed struct {
	error

	text string
}

func (p placed) Error() string { return p.text }

func (p placed) Unwrap() error { return p.error }

// keyAt is the key whose value begins at a place of the file, or, of names, the key that does itself; "": none does. A
// map in a block begins where the first of its keys does.
func (p places) keyAt(line, column int, names bool) string {
	return keyBelow(p.root, "", func(name, value *yaml.Node) bool {
		n := value
		if names {
			n = name
		}
		return n != nil && n.Line == line && n.Column == column
	})
}

// keyBelow is the first key of which is says so, by the node of its name (nil in a list) and by that of its value.
func keyBelow(n *yaml.Node, path string, is func(name, value *yaml.Node) bool) string {
	for i := 0; n != nil && i < len(n.Content); i++ {
		key, value := fmt.Sprintf("%s[%d]", path, i), n.Content[i]
		var name *yaml.Node
		if n.Kind == yaml.MappingNode {
			i++
			name, value = value, n.Content[i]
			key = strings.TrimPrefix(path+"."+name.Value, ".")
		}
		if is(name, value) {
			return key
		}
		if found := keyBelow(value, key, is); found != "" {
			return found
		}
	}
	return ""
}

// steps are the names and numbers of a key.
func steps(key string) []string {
	return strings.FieldsFunc(key, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// keysAt are the keys that there can be where key is; none if that is no map of fixed keys.
func keysAt(key string) []string {
	t := reflect.TypeFor[Config]()
	above := steps(key)
	for _, step := range above[:max(0, len(above)-1)] {
		if t = typeBelow(t, step); t == nil {
			return nil
		}
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for f := range t.Fields() {
		if name := f.Tag.Get("yaml"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// typeBelow is of the value below a name or a number; nil: it has none.
func typeBelow(t reflect.Type, step string) reflect.Type {
	if _, err := strconv.Atoi(step); err == nil && t.Kind() == reflect.Slice {
		return t.Elem()
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		if f.Tag.Get("yaml") == step {
			return f.Type
		}
	}
	return nil
}

// zero is the first number that the file gives and that is 0 in c, as which it was read: it would count as one that is
// not there, and bound nothing where somebody meant that there be nothing. "": there is none.
func (p places) zero(c Config) string { return zeroBelow(p.root, reflect.ValueOf(c), "") }

// everyPort is the number whose 0 says something.
var everyPort = regexp.MustCompile(`^network\.hosts\[[0-9]+\]\.port$`)

// zeroBelow goes by what was read: a 0 has many spellings, and may stand elsewhere in the file under another name.
func zeroBelow(n *yaml.Node, v reflect.Value, path string) string {
	switch {
	case n == nil:
	case n.Kind == yaml.AliasNode:
		return zeroBelow(n.Alias, v, path)
	case v.CanFloat() && v.Float() == 0, v.CanInt() && v.Int() == 0:
		if n.ShortTag() != "!!null" && !everyPort.MatchString(path) {
			return path
		}
	case v.Kind() == reflect.Slice:
		for i := range min(len(n.Content), v.Len()) {
			if found := zeroBelow(n.Content[i], v.Index(i), fmt.Sprintf("%s[%d]", path, i)); found != "" {
				return found
			}
		}
	case v.Kind() == reflect.Struct:
		for f, below := range v.Fields() {
			name := f.Tag.Get("yaml")
			if found := zeroBelow(givenBelow(n, name), below, strings.TrimPrefix(path+"."+name, ".")); found != "" {
				return found
			}
		}
	}
	return ""
}

// givenBelow is the value of a key, also of one that is merged in; nil: it is not given.
func givenBelow(n *yaml.Node, name string) *yaml.Node {
	if below := childOf(n, name); below != nil {
		return below
	}
	merged := childOf(n, "<<")
	switch {
	case merged == nil:
		return nil
	case merged.Kind != yaml.SequenceNode:
		return givenBelow(merged, name)
	}
	for _, one := range merged.Content {
		if below := givenBelow(one, name); below != nil {
			return below
		}
	}
	return nil
}
