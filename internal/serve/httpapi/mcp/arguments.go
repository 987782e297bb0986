package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// maxName bounds an argument's name in a sentence.
const maxName = 64

// maxWhole bounds a whole number: the library reads it as a float64 before it is an int, and past this two numbers
// are one, or none that an int can have.
const maxWhole = 1<<53 - 1

// fitting answers a call whose arguments are not those of its tool, in words that a model can act on: the
// library, which looks behind it once more, names a place in the schema.
func (s *Server) fitting(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		params, ok := req.GetParams().(*sdk.CallToolParamsRaw)
		if !ok || s.takes[params.Name] == nil {
			return next(ctx, method, req)
		}
		wrong := misfit(params.Name, s.takes[params.Name], params.Arguments)
		if wrong == nil {
			return next(ctx, method, req)
		}
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: wrong.Error()}}}, nil
	}
}

// misfit is the first thing that is wrong with a tool's arguments, or nil.
func misfit(tool string, schema *jsonschema.Schema, raw json.RawMessage) error {
	given := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // else one that no float64 has makes the whole object unreadable
	if len(raw) > 0 && decoder.Decode(&given) != nil {
		return failure(codeInvalid, "the arguments are no JSON object", takenBy(tool, schema))
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		property := schema.Properties[name]
		if property == nil {
			return failure(codeInvalid, tool+" takes no argument "+strconv.Quote(text.Shorten(name, maxName)), takenBy(tool, schema))
		}
		if !fits(property, given[name]) {
			then := ""
			if given[name] == nil && !slices.Contains(schema.Required, name) {
				then = "leave it out"
			}
			return failure(codeInvalid, fmt.Sprintf("%q must be %s, and is %s", name, inWords(property), valueInWords(property, given[name])), then)
		}
	}
	for _, name := range schema.Required {
		if _, ok := given[name]; !ok {
			return failure(codeInvalid, strconv.Quote(name)+" is missing", "give it, as "+inWords(schema.Properties[name]))
		}
	}
	return nil
}

// takenBy names a tool's arguments, those first that it must have.
func takenBy(tool string, schema *jsonschema.Schema) string {
	var optional []string
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if !slices.Contains(schema.Required, name) {
			optional = append(optional, name)
		}
	}
	switch {
	case len(schema.Properties) == 0:
		return "call " + tool + " without any"
	case len(optional) == 0:
		return "give " + strings.Join(schema.Required, ", ")
	case len(schema.Required) == 0:
		return "give any of " + strings.Join(optional, ", ")
	}
	return "give " + strings.Join(schema.Required, ", ") + "; and, if you want, " + strings.Join(optional, ", ")
}

// fits tells whether a value is of a property's type. Of schemas this knows what those of our tools are made of;
// the library knows the rest.
func fits(schema *jsonschema.Schema, value any) bool {
	if len(schema.AnyOf) > 0 {
		return slices.ContainsFunc(schema.AnyOf, func(s *jsonschema.Schema) bool { return fits(s, value) })
	}
	switch v := value.(type) {
	case string:
		return schema.Type == "string"
	case bool:
		return schema.Type == "boolean"
	case json.Number:
		f, err := v.Float64()
		return err == nil && schema.Type == "integer" && f == math.Trunc(f) && math.Abs(f) <= maxWhole
	case []any:
		return schema.Type == "array" && !slices.ContainsFunc(v, func(one any) bool { return !fits(schema.Items, one) })
	case map[string]any:
		return schema.Type == "object" && !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(one any) bool { return !fits(schema.AdditionalProperties, one) })
	}
	return false
}

// inWords says what a property takes.
func inWords(schema *jsonschema.Schema) string {
	switch schema.Type {
	case "string":
		return "a text"
	case "boolean":
		return "true or false"
	case "integer":
		return "a whole number"
	case "array":
		return "a list, of which each entry is " + inWords(schema.Items)
	case "object":
		return "an object, of which each value is " + inWords(schema.AdditionalProperties)
	}
	var forms []string
	for _, form := range schema.AnyOf {
		forms = append(forms, inWords(form))
	}
	return strings.Join(forms, ", or ")
}

// valueInWords says what was given where inWords(schema) was wanted.
func valueInWords(schema *jsonschema.Schema, value any) string {
	inside := func(kind string) bool {
		return schema.Type == kind || slices.ContainsFunc(schema.AnyOf, func(s *jsonschema.Schema) bool { return s.Type == kind })
	}
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case json.Number:
		f, err := v.Float64()
		if err != nil || inside("integer") && math.Abs(f) > maxWhole {
			return "a number that is too large"
		}
		return "the number " + strconv.FormatFloat(f, 'g', -1, 64)
	case []any:
		if inside("array") {
			return "a list with another entry"
		}
		return "a list"
	}
	if inside("object") {
		return "an object with another value"
	}
	return "an object"
}
