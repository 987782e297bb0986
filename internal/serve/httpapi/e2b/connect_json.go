package e2b

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

const maxDepth = 32 // of nested objects and arrays; no message of this protocol has more than six

// decodeMessage decodes proto3 JSON strictly: text that is not UTF-8, a key twice
// in one object, nesting without end and values of the wrong type are
// invalid_argument. Unknown fields are ignored, because newer clients send more.
func decodeMessage(data []byte, v any) error {
	if err := backend.CheckText(data); err != nil {
		return refuseWith(codeInvalid, "%v", err)
	}
	if err := checkJSON(data); err != nil {
		return refuseWith(codeInvalid, "the message is not the JSON expected: %v", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return refuseWith(codeInvalid, "the message is not the JSON expected: %v", err)
	}
	return backend.CheckCounts(v)
}

// checkJSON makes sure that data is one JSON object, flat enough, whose keys are
// unique (as encoding/json compares them: without regard to case).
func checkJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	first, err := d.Token()
	if err != nil {
		return err
	}
	if first != json.Delim('{') {
		return errors.New("it is not an object")
	}
	if err := checkObject(d, 1); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

// checkObject reads up to the object's end.
func checkObject(d *json.Decoder, depth int) error {
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string) // a key is a string, or Token had failed
		folded := strings.ToLower(key)
		if seen[folded] {
			return errors.New("a key is there twice: " + strconv.Quote(text.Shorten(key, 40)))
		}
		seen[folded] = true
		if err := checkValue(d, depth); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func checkValue(d *json.Decoder, depth int) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	open, nested := token.(json.Delim)
	switch {
	case !nested:
		return nil
	case depth >= maxDepth:
		return errors.New("it is nested too deeply")
	case open == '{':
		return checkObject(d, depth+1)
	}
	for d.More() {
		if err := checkValue(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// number is a proto3 uint32: a JSON number, or a string with one.
type number uint32

// UnmarshalJSON reads either form.
func (n *number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	content := strings.Trim(string(data), `"`)
	v, err := strconv.ParseUint(content, 10, 32)
	if err != nil {
		return errors.New(text.Shorten(content, 40) + " is not a number of 32 bits")
	}
	*n = number(v)
	return nil
}

// octets is proto3 bytes: base64 of either alphabet, padded or not.
type octets []byte

// UnmarshalJSON reads any of the forms.
func (o *octets) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	text = strings.TrimRight(text, "=")
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	decoded, err := encoding.DecodeString(text)
	if err != nil {
		return errors.New("bytes that are not base64")
	}
	*o = decoded
	return nil
}
