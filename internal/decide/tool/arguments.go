package tool

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Bounds of arguments.
const (
	MaxArguments = 64 << 10 // bytes, as they come
	maxDepth     = 32
	maxTokens    = 10_000
	maxNumber    = 64  // characters
	maxExponent  = 400 // beyond the largest double; a schema computes with exact numbers
)

// Arguments are those of a call: a JSON object in one form, without white space, with
// its members in order, each once, and its numbers as they were written.
type Arguments struct {
	text  string
	value map[string]any
}

// ReadArguments reads what a guest gives. An error is fault.ErrInvalid and says what is
// wrong without the guest's text. No text at all is an empty object.
func ReadArguments(text string) (Arguments, error) {
	if strings.Trim(text, " \t\r\n") == "" {
		text = "{}"
	}
	if len(text) > MaxArguments {
		return Arguments{}, fault.Invalid("the arguments have %d bytes; %d are the limit", len(text), MaxArguments)
	}
	if err := measure(text); err != nil {
		return Arguments{}, err
	}
	form := jsontext.Value(text)
	if err := form.Format(jsontext.ReorderRawObjects(true), jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false)); err != nil {
		return Arguments{}, notJSON(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(form))
	if err != nil {
		return Arguments{}, notJSON(err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return Arguments{}, fault.Invalid("the arguments are no JSON object")
	}
	return Arguments{text: string(form), value: object}, nil
}

func notJSON(err error) error {
	return fault.Wrap(fault.ErrInvalid, err, "the arguments are not JSON as it has to be: one value, valid UTF-8, no member twice")
}

// measure reads all tokens, and refuses what costs more than its length to look at.
func measure(text string) error {
	tokens := jsontext.NewDecoder(strings.NewReader(text))
	for n := 0; ; n++ {
		token, err := tokens.ReadToken()
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return nil
		case err != nil:
			return notJSON(err)
		case n >= maxTokens:
			return fault.Invalid("the arguments have more than %d parts", maxTokens)
		case tokens.StackDepth() > maxDepth:
			return fault.Invalid("the arguments are nested more than %d deep", maxDepth)
		case token.Kind() == '0' && !ordinary(token.String()):
			return fault.Invalid("a number in the arguments is longer than %d characters, or far beyond what computers compute with", maxNumber)
		}
	}
}

// ordinary tells a number that is small enough to compute with exactly.
func ordinary(number string) bool {
	if len(number) > maxNumber {
		return false
	}
	_, exponent, found := strings.Cut(strings.ToLower(number), "e")
	if !found {
		return true
	}
	n, err := strconv.Atoi(exponent)
	return err == nil && -maxExponent <= n && n <= maxExponent
}

// Text is the arguments as JSON, in their one form.
func (a Arguments) Text() string { return a.text }

// Members are the arguments decoded, with json.Number for numbers, for rules. Nobody
// changes them.
func (a Arguments) Members() map[string]any { return a.value }
