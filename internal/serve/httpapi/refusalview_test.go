package httpapi

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// fillFields gives each field of a struct a value that is not its zero.
func fillFields(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Type() == reflect.TypeFor[time.Time]():
			f.Set(reflect.ValueOf(time.Unix(1, 0).UTC()))
		case f.Kind() == reflect.Struct:
			fillFields(f)
		case f.Kind() == reflect.String:
			f.SetString(v.Type().Field(i).Name)
		case f.CanInt():
			f.SetInt(int64(i) + 1)
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		}
	}
}

// TestNoFieldOfARefusalIsLost: the wire's types have all that the door's have, under the same names.
func TestNoFieldOfARefusalIsLost(t *testing.T) {
	t.Parallel()
	var r door.Refusal
	fillFields(reflect.ValueOf(&r).Elem())
	view := viewRefusal(r)
	want, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(view); err != nil || string(got) != string(want) {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	for i := range reflect.TypeFor[door.Refusal]().NumField() {
		if reflect.ValueOf(r).Field(i).IsZero() {
			t.Errorf("%s was not filled", reflect.TypeFor[door.Refusal]().Field(i).Name)
		}
	}
	if ours, theirs := reflect.TypeFor[pkgref.Ref]().NumField(), reflect.TypeFor[api.Ref]().NumField(); ours != theirs {
		t.Errorf("pkgref.Ref has %d fields, and api.Ref, by which openapi.yaml describes both, %d", ours, theirs)
	}
}
