package mcp_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestWrongArgumentsAreSentences: each tool says of each argument that is missing, unknown or of another type
// which one it is and what it must be, in our words: a model can act on no place in a schema.
func TestWrongArgumentsAreSentences(t *testing.T) {
	t.Parallel()
	p := join(t, newServer(newHouse(t), nil), nil)
	tools, err := p.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		var schema struct {
			Properties map[string]json.RawMessage
			Required   []string
		}
		data, err := json.Marshal(tool.InputSchema)
		if err != nil || json.Unmarshal(data, &schema) != nil {
			t.Fatal(err)
		}
		wrong := func(in object, want ...string) {
			t.Helper()
			_, says := p.call(tool.Name, in)
			if !strings.HasPrefix(says, "invalid_argument: ") || !strings.HasSuffix(says, ".") || len(says) > 400 {
				t.Errorf("%s %v: %q", tool.Name, in, says)
			}
			for _, word := range want {
				if !strings.Contains(says, word) {
					t.Errorf("%s %v: no %s in %q", tool.Name, in, word, says)
				}
			}
			for _, word := range []string{"validating", "schema", "properties", "reflect"} {
				if strings.Contains(says, word) {
					t.Errorf("%s %v: the library's words: %q", tool.Name, in, says)
				}
			}
		}
		names := slices.Sorted(maps.Keys(schema.Properties))
		wrong(object{"nonsense": 1}, append(names, `"nonsense"`)...)
		for _, name := range names {
			for _, value := range []any{nil, 1.5, []any{1, "x"}, object{"x": 1}, []any{nil}} {
				wrong(object{name: value}, `"`+name+`" must be `)
			}
		}
		for _, name := range schema.Required {
			rest := object{}
			for _, other := range schema.Required {
				if other != name {
					rest[other] = valid(other)
				}
			}
			wrong(rest, `"`+name+`" is missing`)
		}
	}
}

// valid is a value that an argument takes.
func valid(name string) any {
	if name == "packages" {
		return []string{"six"}
	}
	return "x"
}
