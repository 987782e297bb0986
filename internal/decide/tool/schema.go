package tool

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Schema says which arguments a tool takes. It is safe for concurrent use.
type Schema struct {
	text    string
	judging *jsonschema.Schema
}

// anyObject is the schema of a tool that has none.
const anyObject = `{"type":"object"}`

// place is what a schema is known by while it is read; nothing is fetched from there.
const place = "cofferdam:arguments"

// nowhere gives no document: a schema is whole by itself.
type nowhere struct{}

// Load implements jsonschema.URLLoader.
func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is in another document, and a tool's schema has to be whole by itself", url)
}

// SchemaError is why a text is no schema of a tool.
type SchemaError struct {
	// Path leads to the part that is wrong, from the outside in; empty: it is the whole.
	Path []string
	Says string
}

// Error implements error.
func (e *SchemaError) Error() string { return e.Says }

// ParseSchema reads an operator's schema, of draft 2020-12 unless it says another. With
// format it is a demand, and not a remark. No text is any object. An error is a
// *SchemaError.
func ParseSchema(text string) (*Schema, error) {
	if text == "" {
		text = anyObject
	}
	form := jsontext.Value(text)
	if err := form.Compact(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false)); err != nil {
		return nil, &SchemaError{Says: "it is not JSON: " + err.Error()}
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(form))
	if err != nil {
		return nil, &SchemaError{Says: "it is not JSON: " + err.Error()}
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	c.AssertFormat()
	if err := c.AddResource(place, document); err != nil {
		return nil, unfitPart(err)
	}
	judging, err := c.Compile(place)
	if err != nil {
		return nil, unfitPart(err)
	}
	return &Schema{text: string(form), judging: judging}, nil
}

// unfitPart says which part of a schema is none, as far as the compiler tells.
func unfitPart(err error) *SchemaError {
	e := &SchemaError{Says: "it is no JSON Schema: " + err.Error()}
	if bad, ok := errors.AsType[*jsonschema.InvalidRegexError](err); ok {
		_, pointer, _ := strings.Cut(bad.URL, "#/")
		if pointer != "" {
			e.Path = strings.Split(pointer, "/")
		}
		return e
	}
	whole, ok := errors.AsType[*jsonschema.SchemaValidationError](err)
	if !ok {
		return e
	}
	if wrong, ok := errors.AsType[*jsonschema.ValidationError](whole.Err); ok {
		end := deepest(wrong)
		e.Path, e.Says = end.InstanceLocation, "it is no JSON Schema: "+complaint(end)
	}
	return e
}

// deepest is the error in a tree that is furthest inside of what is judged.
func deepest(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	best := e
	for _, cause := range e.Causes {
		if d := deepest(cause); len(d.InstanceLocation) > len(best.InstanceLocation) || len(best.Causes) > 0 {
			best = d
		}
	}
	return best
}

// Text is the schema as JSON.
func (s *Schema) Text() string { return s.text }

// maxComplaint bounds what is said of arguments that a schema does not take, in bytes.
const maxComplaint = 600

// Judge refuses arguments that the schema does not take: fault.ErrInvalid, with where and
// what is wrong. The sentence has the guest's own names and values in it.
func (s *Schema) Judge(a Arguments) error {
	err := s.judging.Validate(a.value)
	if err == nil {
		return nil
	}
	wrong, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return fault.Wrap(fault.ErrInvalid, err, "the arguments can't be judged")
	}
	var all []string
	complaints(wrong, &all)
	return fault.Invalid("the arguments are not what the tool takes: %s", text.Shorten(strings.Join(all, "; "), maxComplaint))
}

// complaints collects what is wrong at the ends of a tree of errors.
func complaints(e *jsonschema.ValidationError, into *[]string) {
	if len(e.Causes) > 0 {
		for _, cause := range e.Causes {
			complaints(cause, into)
		}
		return
	}
	if len(*into) >= 8 {
		return
	}
	says := complaint(e)
	if len(e.InstanceLocation) > 0 {
		says = strings.Join(e.InstanceLocation, ".") + ": " + says
	}
	*into = append(*into, says)
}

// complaint is what one error says, without the place.
func complaint(e *jsonschema.ValidationError) string {
	_, says, found := strings.Cut(e.Error(), "': ") // "at '/a': what is wrong"
	if !found {
		return e.Error()
	}
	return says
}
