package lockfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
)

// plain is a value without positions; of scalars that are no strings only that
// they are there.
func plain(v *value) any {
	switch v.kind {
	case textKind:
		return v.text
	case list:
		items := make([]any, len(v.values))
		for i, item := range v.values {
			items[i] = plain(item)
		}
		return items
	case mapping:
		fields := map[string]any{}
		for i, key := range v.keys {
			fields[key] = plain(v.values[i])
		}
		return fields
	case scalar:
	}
	return nil
}

// decoded is what the library's decoder gave, made plain.
func decoded(v any) any {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = decoded(item)
		}
		return items
	case map[string]any:
		fields := map[string]any{}
		for key, item := range v {
			fields[key] = decoded(item)
		}
		return fields
	}
	return nil
}

// FuzzTOML: what is accepted, the library's own decoder reads in the same way.
func FuzzTOML(f *testing.F) {
	f.Add("a = 1\n[b]\nc = { d = \"e\", f.g = [1, \"x\", {}] }\n[[h]]\ni = 1\n[[h]]\n[h.j]\n\"k l\" = '''m\n'''\n")
	f.Add("[a.b]\n[a]\nc.d = 1\nc.e = 2\n[a.f]\n")
	f.Add("version = 1\n[[package]]\nname = \"a\"\nsource = { registry = \"x\" }\nwheels = [\n  { url = \"u\", hash = \"h\" }, # one\n]\n")
	f.Fuzz(func(t *testing.T, document string) {
		b := &builder{name: "f"}
		if b.checkText([]byte(document)) != nil {
			return
		}
		mine, err := b.readTOML([]byte(document))
		if err != nil {
			return
		}
		var theirs map[string]any
		if err := toml.Unmarshal([]byte(document), &theirs); err != nil {
			if numeric(err) {
				return
			}
			t.Fatalf("the decoder refuses it: %v", err)
		}
		if theirs == nil {
			theirs = map[string]any{}
		}
		if diff := cmp.Diff(decoded(theirs), plain(mine)); diff != "" {
			t.Errorf("(-decoder +mine):\n%s", diff)
		}
	})
}

// numeric tells that the decoder refuses a number, a time or the like, none of
// which is read from a lockfile.
func numeric(err error) bool {
	for _, about := range []string{"number", "date", "time", "integer", "float", "digit", "range", "underscore", "hour", "minute", "second", "month", "day", "leading zero", "decimal", "exponent"} {
		if strings.Contains(strings.ToLower(err.Error()), about) {
			return true
		}
	}
	return false
}
