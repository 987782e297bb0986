package backend

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// ReadJSON decodes a request's body of up to most bytes strictly: a field that this
// version does not know may ask for something that it does not do, and one that stands
// twice says two things. empty: there was no body, and v is as it was.
func ReadJSON(r *http.Request, most int64, v any) (empty bool, err error) {
	body, err := io.ReadAll(io.LimitReader(Held(r.Context(), r.Body), most+1))
	_, cut := errors.AsType[*http.MaxBytesError](err)
	switch {
	case errors.Is(err, fault.ErrExhausted):
		return false, err
	case cut || int64(len(body)) > most:
		return false, fault.Invalid("the request's body is larger than %d bytes", most)
	case err != nil:
		return false, fault.Wrap(fault.ErrInvalid, err, "the request's body can't be read")
	case len(body) == 0:
		return true, nil
	}
	if err := TakeDecoded(r.Context(), body, v); err != nil {
		return false, err
	}
	if err := explainBody(json.Unmarshal(body, v, json.RejectUnknownMembers(true))); err != nil {
		return false, err
	}
	return false, CheckCounts(v)
}

// CheckText refuses JSON with text that no decoder can give as it is: bytes that are no UTF-8, and
// halves of surrogate pairs, for which encoding/json puts U+FFFD without a word: another name,
// argument or value. Each wire whose decoder does that asks here first; ReadJSON's does not. Other
// faults of data are for its decoder to tell.
func CheckText(data []byte) error {
	value, twice := jsontext.Value(data), jsontext.AllowDuplicateNames(true)
	if value.IsValid(twice) || !value.IsValid(twice, jsontext.AllowInvalidUTF8(true)) {
		return nil
	}
	return fault.Invalid("a text of the request is no UTF-8, or has half of a surrogate pair, and can't be taken as it is; write such bytes to a file by base64, or have a command inside make them")
}

// explainBody says what of a body is wrong in the words of whoever wrote it.
func explainBody(err error) error {
	if err == nil {
		return nil
	}
	s, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return fault.Invalid("the request's body is not valid JSON: %s", text.Shorten(strings.TrimPrefix(err.Error(), "jsontext: "), 200))
	}
	at := text.Shorten(strings.TrimPrefix(string(s.JSONPointer), "/"), 100)
	switch {
	case errors.Is(s.Err, json.ErrUnknownName):
		return fault.Invalid("the request's body has the unknown field %q; known fields: %s", at, text.Shorten(strings.Join(fieldsOf(s.GoType), ", "), 1000))
	case at == "":
		return fault.Invalid("the request's body is a JSON %s; send an object", kindName(s.JSONKind))
	case s.Err != nil:
		return fault.Invalid("the request's body is not valid at %q: %s", at, text.Shorten(s.Err.Error(), 200))
	}
	return fault.Invalid("the request's body is not valid at %q: the field takes no JSON %s", at, kindName(s.JSONKind))
}

func kindName(k jsontext.Kind) string {
	switch k {
	case jsontext.KindTrue, jsontext.KindFalse:
		return "boolean"
	case jsontext.KindBeginObject:
		return "object"
	case jsontext.KindBeginArray:
		return "array"
	default:
		return k.String()
	}
}

// fieldsOf are the names that an object of a type has in JSON, sorted.
func fieldsOf(t reflect.Type) []string {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "" && name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
