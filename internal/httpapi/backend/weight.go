package backend

import "reflect"

// The memory that values take beside their text and the fields of their types, in bytes.
const (
	perEntry    = 64  // of a map, beside its key and its value
	perAny      = 48  // of a value of no type that is known before: an interface and what is behind it
	perUnknown  = 128 // of a member of an object that is looked at and has no place in a type
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
