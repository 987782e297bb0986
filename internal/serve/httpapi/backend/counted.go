package backend

import (
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// MaxItems is how many items a list or an object of a request may have, where its field has no tag
// `most:"N"` that says another number.
const MaxItems = 1_000

// CheckCounts refuses a decoded request, a pointer to a struct, that has a list or an object of more items
// than its field takes (fault.ErrInvalid). A decoder of a request for a handler calls it, so that what is
// done for each item, and for each pair of items, is bounded by how many there may be and not by how many
// fit into a body. Bytes and texts are no lists, nor is what is kept as JSON.
func CheckCounts(v any) error { return checkCounts(reflect.ValueOf(v), "", MaxItems) }

// checkCounts looks at what lies at a path, of which at most so many may be.
func checkCounts(v reflect.Value, at string, most int) error {
	if !v.IsValid() || !mayHold(v.Type()) {
		return nil
	}
	switch v.Kind() { //nolint:exhaustive // the others hold no items
	case reflect.Pointer, reflect.Interface:
		return checkCounts(v.Elem(), at, most)
	case reflect.Struct:
		return checkFields(v, at)
	case reflect.Slice, reflect.Array, reflect.Map:
		if v.Len() > most {
			return fault.Invalid("the request's %s has %d items; it may have %d", text.Shorten(at, 100), v.Len(), most)
		}
		return checkItems(v, at, most)
	}
	return nil
}

func checkFields(v reflect.Value, at string) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() && !field.Anonymous {
			continue
		}
		most := MaxItems
		if n, err := strconv.Atoi(field.Tag.Get("most")); err == nil {
			most = n
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if err := checkCounts(v.Field(i), strings.TrimPrefix(at+"."+name, "."), most); err != nil {
			return err
		}
	}
	return nil
}

// checkItems looks into each item; a list in a list has as many at most as the outer one's field says.
func checkItems(v reflect.Value, at string, most int) error {
	if !mayHold(v.Type().Elem()) {
		return nil
	}
	if v.Kind() == reflect.Map {
		for _, key := range v.MapKeys() {
			if err := checkCounts(v.MapIndex(key), at, most); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range v.Len() {
		if err := checkCounts(v.Index(i), at, most); err != nil {
			return err
		}
	}
	return nil
}

// mayHold tells whether a value of a type may be, or have in it, a list or an object. One that reads or
// writes itself is one value.
func mayHold(t reflect.Type) bool {
	switch t.Kind() { //nolint:exhaustive // the others hold no items
	case reflect.Interface:
		return true
	case reflect.Pointer:
		return mayHold(t.Elem())
	case reflect.Slice, reflect.Array:
		return t.Elem().Kind() != reflect.Uint8
	case reflect.Struct:
		return !slices.ContainsFunc([]reflect.Type{t, reflect.PointerTo(t)}, func(t reflect.Type) bool {
			return t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
		})
	case reflect.Map:
		return true
	}
	return false
}
