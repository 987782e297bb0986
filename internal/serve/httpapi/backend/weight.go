package backend

import (
	"bytes"
	"cmp"
	"context"
	"encoding"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The memory that values take beside their text and the fields of their types, in bytes.
const (
	perEntry    = 64  // of a map, beside its key and its value
	perAny      = 48  // of a value of no type that is known before: an interface and what is behind it
	perUnknown  = 128 // of a member of an object that is looked at and has no place in a type
	perMap      = 64  // of a map that is not empty, beside its first group
	groupSlots  = 8   // entries of a map's first group, which are there with the first
	deepestSeen = 64  // levels of a value that are counted; no type of ours has as many
)

// SizeOf is about how many bytes a value takes that is answered: its texts, its lists and its maps,
// those that it shares with others included, because it may be the last that has them.
func SizeOf(v any) int {
	value := reflect.ValueOf(v)
	if !value.IsValid() {
		return 0
	}
	return int(value.Type().Size()) + sizeBelow(value, 0)
}

// sizeBelow is what a value takes elsewhere: what it refers to.
func sizeBelow(v reflect.Value, depth int) int {
	if depth > deepestSeen || isFlat(v.Type()) {
		return 0
	}
	size := 0
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			size = int(v.Elem().Type().Size()) + sizeBelow(v.Elem(), depth+1)
		}
	case reflect.Slice:
		size = v.Len() * int(v.Type().Elem().Size())
		fallthrough
	case reflect.Array:
		if isFlat(v.Type().Elem()) {
			return size
		}
		for i := range v.Len() {
			size += sizeBelow(v.Index(i), depth+1)
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			size += perEntry + int(v.Type().Key().Size()+v.Type().Elem().Size())
			size += sizeBelow(entry.Key(), depth+1) + sizeBelow(entry.Value(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				size += sizeBelow(v.Field(i), depth+1)
			}
		}
	default:
	}
	return size
}

// isFlat tells that a value of a type refers to nothing.
func isFlat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		return false
	default:
		return true
	}
}

// weighJSON estimates how many bytes the JSON text of a value of type t takes once it is decoded, beside its own:
// two bytes of a list may become hundreds. A text that is no JSON is counted as far as it is; nil is any type.
func weighJSON(text []byte, t reflect.Type) int {
	w := weigher{d: jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)), fields: map[reflect.Type]map[string]reflect.Type{}}
	_ = w.weighValue(t) // who decodes it says what is wrong
	return w.n
}

// TakeDecoded takes room for what a JSON text becomes that is decoded into v; nil is any value.
func TakeDecoded(ctx context.Context, text []byte, v any) error {
	if _, ok := ctx.Value(roomKey{}).(*share); !ok {
		return nil
	}
	return Take(ctx, weighJSON(text, reflect.TypeOf(v)))
}

// weigher counts along a text.
type weigher struct {
	d      *jsontext.Decoder
	fields map[reflect.Type]map[string]reflect.Type // of structs, by their folded names in JSON
	n      int
}

func (w *weigher) weighValue(t reflect.Type) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
		w.n += int(t.Size())
	}
	if t != nil && decodesItself(t) {
		t = nil
	}
	switch w.d.PeekKind() {
	case jsontext.KindBeginArray:
		return w.weighList(t)
	case jsontext.KindBeginObject:
		return w.object(t)
	default:
		return w.d.SkipValue()
	}
}

func (w *weigher) weighList(t reflect.Type) error {
	cost, of := perAny, reflect.Type(nil)
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		of = t.Elem()
		cost = 2 * max(int(of.Size()), 1) // a list that grows has as much again
	}
	if _, err := w.d.ReadToken(); err != nil {
		return err
	}
	for w.d.PeekKind() != jsontext.KindEndArray {
		w.n += cost
		if err := w.weighValue(of); err != nil {
			return err
		}
	}
	_, err := w.d.ReadToken()
	return err
}

func (w *weigher) object(t reflect.Type) error {
	if _, err := w.d.ReadToken(); err != nil {
		return err
	}
	if w.d.PeekKind() == jsontext.KindString {
		w.n += firstGroup(t)
	}
	for w.d.PeekKind() != jsontext.KindEndObject {
		name, err := w.d.ReadValue()
		if err != nil {
			return err
		}
		cost, of := w.weighMember(t, name)
		w.n += cost
		if err := w.weighValue(of); err != nil {
			return err
		}
	}
	_, err := w.d.ReadToken()
	return err
}

// firstGroup is what an object takes with its first member.
func firstGroup(t reflect.Type) int {
	switch {
	case t == nil || t.Kind() == reflect.Interface:
		return perMap + groupSlots*int(reflect.TypeFor[string]().Size()+reflect.TypeFor[any]().Size())
	case t.Kind() == reflect.Map:
		return perMap + groupSlots*int(t.Key().Size()+t.Elem().Size())
	}
	return 0
}

// weighMember returns what a member of an object takes, and its type.
func (w *weigher) weighMember(t reflect.Type, name jsontext.Value) (cost int, of reflect.Type) {
	switch {
	case t != nil && t.Kind() == reflect.Map:
		return perEntry + 2*int(t.Key().Size()+t.Elem().Size()), t.Elem()
	case t != nil && t.Kind() == reflect.Struct:
		if w.fields[t] == nil {
			w.fields[t] = map[string]reflect.Type{}
			for _, f := range reflect.VisibleFields(t) {
				said, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				w.fields[t][folded(cmp.Or(said, f.Name))] = f.Type
			}
		}
		plain, err := jsontext.AppendUnquote(nil, name) // a name may be written in escapes
		if of := w.fields[t][folded(string(plain))]; err == nil && of != nil {
			return 0, of // its place is in the struct
		}
	}
	return perUnknown, nil
}

// folded is a name as every decoder of ours compares it, or more loosely: some heed no case, by Unicode's rules.
func folded(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// decodesItself tells that a type reads its own JSON.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
