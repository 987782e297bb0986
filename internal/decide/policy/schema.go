package policy

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Schema is the JSON Schema (draft 7) of a policy document, for editors. It refuses no
// document that Parse reads. Parse refuses more: what hangs on two keys, versions, names
// of packages, expressions.
func Schema() ([]byte, error) {
	m := schemaMaker{plain: plainForms(), words: wordsOfKinds(), short: shorthands()}
	root := node{
		{"$schema", "http://json-schema.org/draft-07/schema#"},
		{"title", "Cofferdam policy"},
		{"description", "What a run may install, start and reach. docs/policy.md explains every key; `cofferdam policy check` reads a document as the daemon does."},
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(append(root, m.formOf(reflect.TypeFor[document]())...)); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// node is an object of the schema, whose members keep their order.
type node []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (n node) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	out.WriteByte('{')
	for i, m := range n {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := e.Encode(m.name); err != nil {
			return nil, err
		}
		out.WriteByte(':')
		if err := e.Encode(m.value); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// schemaMaker turns the types of a document into its schema.
type schemaMaker struct {
	plain map[reflect.Type]node
	words map[reflect.Type][]string
	short map[reflect.Type]reflect.Type
}

// formOf is how a value of a type is written.
func (m schemaMaker) formOf(of reflect.Type) node {
	if of.Kind() == reflect.Pointer { // null is "not set"
		return either(append([]node{{{"type", "null"}}}, m.formOf(of.Elem()))...)
	}
	if form, ok := m.plain[of]; ok {
		return form
	}
	if words, ok := m.words[of]; ok {
		return node{{"enum", words}}
	}
	switch of.Kind() {
	case reflect.Slice:
		return node{{"type", "array"}, {"items", m.formOf(of.Elem())}}
	case reflect.Map:
		return m.ecosystems(of.Elem())
	case reflect.Struct:
		if short, ok := m.short[of]; ok {
			return either(m.formOf(short), m.object(of))
		}
		return m.object(of)
	default:
		panic("policy: no form of " + of.String()) // a type of document.go that written.go lacks; every test of Schema sees it
	}
}

// ecosystems is a mapping from the ecosystems to values of one type.
func (m schemaMaker) ecosystems(of reflect.Type) node {
	members := node{}
	for _, e := range pkgref.Ecosystems() {
		members = append(members, member{string(e), m.formOf(of)})
	}
	return node{{"type", "object"}, {"properties", members}, {"additionalProperties", false}}
}

func (m schemaMaker) object(of reflect.Type) node {
	members, needed := node{}, []string{}
	for f := range of.Fields() {
		key := f.Tag.Get("key")
		members = append(members, member{key, append(node{{"description", f.Tag.Get("means")}}, m.formOf(f.Type)...)})
		if f.Tag.Get("needed") != "" {
			needed = append(needed, key)
		}
	}
	o := node{{"type", "object"}, {"properties", members}}
	if len(needed) > 0 {
		o = append(o, member{"required", needed})
	}
	return append(o, member{"additionalProperties", false})
}
