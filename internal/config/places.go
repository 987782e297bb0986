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

// placeAll is place for each line of an error's text, as one sentence after the other.
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

// keyAt is the key which, or whose value, begins at a place of the file; "": none does.
func (p places) keyAt(line, column int) string { return keyBelow(p.root, "", line, column) }

func keyBelow(n *yaml.Node, path string, line, column int) string {
	here := func(n *yaml.Node) bool { return n.Line == line && n.Column == column }
	for i := 0; n != nil && i < len(n.Content); i++ {
		key, value := fmt.Sprintf("%s[%d]", path, i), n.Content[i]
		if n.Kind == yaml.MappingNode {
			key = strings.TrimPrefix(path+"."+value.Value, ".")
			if here(value) {
				return key
			}
			i++
			value = n.Content[i]
		}
		if here(value) {
			return key
		}
		if found := keyBelow(value, key, line, column); found != "" {
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

// zero is the first number in the file that is 0, and would count as one that is not there: nothing is bounded where
// somebody meant that there be nothing. "": there is none.
func (p places) zero() string { return zeroBelow(p.root, reflect.TypeFor[Config](), "") }

// everyPort is the number whose 0 says something.
var everyPort = regexp.MustCompile(`^network\.hosts\[[0-9]+\]\.port$`)

func zeroBelow(n *yaml.Node, t reflect.Type, path string) string {
	switch {
	case n == nil || t == nil || everyPort.MatchString(path):
		return ""
	case t.Kind() == reflect.Int || t.Kind() == reflect.Float64:
		if v, err := strconv.ParseFloat(n.Value, 64); n.Kind == yaml.ScalarNode && err == nil && v == 0 {
			return path
		}
		return ""
	}
	for i := range n.Content {
		step, key := strconv.Itoa(i), fmt.Sprintf("%s[%d]", path, i)
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			step = n.Content[i-1].Value
			key = strings.TrimPrefix(path+"."+step, ".")
		}
		if found := zeroBelow(n.Content[i], typeBelow(t, step), key); found != "" {
			return found
		}
	}
	return ""
}
