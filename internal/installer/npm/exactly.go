package npm

import (
	"bytes"
	"encoding/json" // for the last of two keys

	exactjson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// exactly reads JSON as the clients do, who know "Dependencies" for nothing, and take the last of two keys: all of it, where reading both
// into one mapping would join them.
func exactly(data []byte, into any) error {
	if jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		var last any
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		if err := decoder.Decode(&last); err != nil {
			return err
		}
		once, err := json.Marshal(last)
		if err != nil {
			return err
		}
		data = once
	}
	return exactjson.Unmarshal(data, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}
