package client

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// TextError is a request that was not sent: one of its texts is no UTF-8, and would have arrived as
// another text.
type TextError struct {
	// Field is which one: a variable, a word of the command, or the field's name in JSON.
	Field string
}

// Error names the text.
func (e *TextError) Error() string {
	return e.Field + " is no UTF-8, and would not arrive as it is; write such bytes to a file or to stdin, or have a command inside make them"
}

// CheckText looks for a text in a request's body that JSON can't carry as it is. The error is a *TextError.
func CheckText(body any) error { return checkText(reflect.ValueOf(body), "the request") }

func checkText(v reflect.Value, field string) error {
	switch v.Kind() { //nolint:exhaustive // the others hold no text
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return &TextError{Field: field}
		}
	case reflect.Pointer, reflect.Interface:
		return checkText(v.Elem(), field)
	case reflect.Struct:
		return checkFields(v)
	case reflect.Map:
		return checkMap(v, field)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil // bytes are sent as base64, or are JSON already
		}
		for i := range v.Len() {
			item := fmt.Sprintf("%s[%d]", field, i)
			if field == "argv" {
				item = fmt.Sprintf("word %d of the command", i+1)
			}
			if err := checkText(v.Index(i), item); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkFields(v reflect.Value) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if err := checkText(v.Field(i), name); err != nil {
			return err
		}
	}
	return nil
}

func checkMap(v reflect.Value, field string) error {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		item := fmt.Sprintf("%s %q", field, key.String())
		if field == "env" {
			item = fmt.Sprintf("the variable %q", key.String())
		}
		if err := checkText(key, "the name of "+item); err != nil {
			return err
		}
		if err := checkText(v.MapIndex(key), item); err != nil {
			return err
		}
	}
	return nil
}
