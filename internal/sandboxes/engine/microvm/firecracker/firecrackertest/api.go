package firecrackertest

import (
	"bytes"
	_ "embed" // the description of the API
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
)

//go:embed testdata/api.json
var description []byte

// Calls is what is known of the API.
type Calls struct {
	About string `json:"about"`
	Calls []Call `json:"calls"`
}

// Call is one call.
type Call struct {
	Method  string           `json:"method"`
	Path    string           `json:"path"` // {name} stands for one part
	When    string           `json:"when"` // before, after: the start of the machine; any
	Answers int              `json:"answers"`
	Fields  map[string]Field `json:"fields,omitempty"` // of the body; without any there is none
}

// Field is one of a body.
type Field struct {
	Type     string           `json:"type"` // of JSON; integer for a number without a part
	Required bool             `json:"required,omitempty"`
	Values   []string         `json:"values,omitempty"`
	Least    float64          `json:"least,omitempty"`
	Most     float64          `json:"most,omitempty"`
	Fields   map[string]Field `json:"fields,omitempty"` // of an object that is described
}

// Description reads what is known of the API.
func Description() (Calls, error) {
	var c Calls
	d := json.NewDecoder(bytes.NewReader(description))
	d.DisallowUnknownFields()
	err := d.Decode(&c)
	return c, err
}

// Find is the call with a method and a path.
func (c Calls) Find(method, at string) (Call, error) {
	for _, call := range c.Calls {
		pattern := call.Path
		if dir, _, ok := strings.Cut(pattern, "{"); ok {
			pattern = dir + "*"
		}
		if ok, err := path.Match(pattern, at); err == nil && ok && call.Method == method {
			return call, nil
		}
	}
	return Call{}, fmt.Errorf("there is no call %s %s", method, at)
}

// Check tells whether a body is one of the call's.
func (c Call) Check(body []byte) error {
	if c.Fields == nil {
		if len(body) > 0 {
			return fmt.Errorf("%s takes no body", c.Path)
		}
		return nil
	}
	var values map[string]any
	if err := json.Unmarshal(body, &values); err != nil {
		return fmt.Errorf("%s: the body is no object: %w", c.Path, err)
	}
	return checkFields(c.Path, c.Fields, values)
}

func checkFields(where string, fields map[string]Field, values map[string]any) error {
	for name := range values {
		if _, known := fields[name]; !known {
			return fmt.Errorf("%s: there is no field %s", where, name)
		}
	}
	for name, field := range fields {
		value, given := values[name]
		if !given {
			if field.Required {
				return fmt.Errorf("%s: the field %s is missing", where, name)
			}
			continue
		}
		if err := field.checkValue(where+"."+name, value); err != nil {
			return err
		}
	}
	return nil
}

func (f Field) checkValue(where string, value any) error {
	ok := false
	switch v := value.(type) {
	case bool:
		ok = f.Type == "boolean"
	case []any:
		ok = f.Type == "array"
	case string:
		ok = f.Type == "string" && (f.Values == nil || slices.Contains(f.Values, v))
	case float64:
		ok = f.Type == "integer" && v == math.Trunc(v) && v >= f.Least && (f.Most == 0 || v <= f.Most)
	case map[string]any:
		if f.Type == "object" && f.Fields != nil {
			return checkFields(where, f.Fields, v)
		}
		ok = f.Type == "object"
	}
	if !ok {
		return fmt.Errorf("%s: %v is none of its values", where, value)
	}
	return nil
}
