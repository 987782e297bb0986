package tool

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
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

// ParseSchema reads an operator's schema, of draft 2020-12 unless it says another. With
// format it is a demand, and not a remark. No text is any object.
func ParseSchema(text string) (*Schema, error) {
	if text == "" {
		text = anyObject
	}
	form := jsontext.Value(text)
	if err := form.Compact(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false)); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(form))
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	c.AssertFormat()
	if err := c.AddResource(place, document); err != nil {
		return nil, fmt.Errorf("it is no JSON Schema: %w", err)
	}
	judging, err := c.Compile(place)
	if err != nil {
		return nil, fmt.Errorf("it is no JSON Schema: %w", err)
	}
	return &Schema{text: string(form), judging: judging}, nil
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
	return fault.Invalid("the arguments are not what the tool takes: %s", excerpt.Of(strings.Join(all, "; "), maxComplaint))
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
	_, says, found := strings.Cut(e.Error(), "': ") // "at '/a': what is wrong"
	if !found {
		says = e.Error()
	}
	if len(e.InstanceLocation) > 0 {
		says = strings.Join(e.InstanceLocation, ".") + ": " + says
	}
	*into = append(*into, says)
}
