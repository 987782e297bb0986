package npm

import (
	"bytes"
	"encoding/json" // for the last of two keys
	"fmt"
	"maps"
	"slices"

	exactjson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
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

// specTable has names and what each is asked for by. It refuses null, as it does what else is no text: no client asks for a name by that, and
// a mapping of texts would have "" for it, by which clients ask for any version.
type specTable map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (t *specTable) UnmarshalJSON(data []byte) error {
	var all map[string]*string
	if err := exactly(data, &all); err != nil {
		return err
	}
	return t.setSpecs(all)
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *specTable) UnmarshalYAML(node *yaml.Node) error {
	var all map[string]*string
	if err := node.Decode(&all); err != nil {
		return err
	}
	return t.setSpecs(all)
}

func (t *specTable) setSpecs(all map[string]*string) error {
	*t = make(specTable, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] == nil {
			return fmt.Errorf("%q is asked for by null, which is no version", name)
		}
		(*t)[name] = *all[name]
	}
	return nil
}
