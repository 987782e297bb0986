package manifest

import (
	"fmt"
	"slices"
	"testing"
)

// TestLinesEndForAll: what one of the clients reads as a line is one.
func TestLinesEndForAll(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                   nil,
		"a":                  {"1 a"},
		"a\n\nb\n":           {"1 a", "2 ", "3 b"},
		"a\r\nb\r\n":         {"1 a", "2 b"},
		"a\rb\r\rc\nd":       {"1 a", "1 b", "1 ", "1 c", "2 d"},
		"a\fb\vc\x1cd\u0085": {"1 a", "1 b", "1 c", "1 d", "1 "},
		"a\u2028é\u2029b":    {"1 a", "1 é", "1 b"},
	} {
		var got []string
		for number, line := range (Text{Data: []byte(text)}).Lines() {
			got = append(got, fmt.Sprint(number, " ", line))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestALineIsOfAWholeWord: a person who looks there finds what is meant.
func TestALineIsOfAWholeWord(t *testing.T) {
	t.Parallel()
	text := Text{Data: []byte("requests-toolbelt = 1\nmy_requests = 1\n@types/requests: 1\nrequests2 = 1\nrequests = 1\n[tool.uv.index]\nx = \"requests>=1\"\n")}
	for _, c := range []struct {
		words []string
		want  int
	}{
		{[]string{"requests"}, 5},
		{[]string{"requests-toolbelt"}, 1},
		{[]string{"types/requests"}, 0},
		{[]string{"@types/requests"}, 3},
		{[]string{"index"}, 6},
		{[]string{"tool.uv", "index"}, 6},
		{[]string{"tool.uv.index", "requests"}, 7},
		{[]string{"request"}, 0},
		{[]string{""}, 1},
		{[]string{"requests>=1"}, 7},
	} {
		if got := text.LineOf(c.words...); got != c.want {
			t.Errorf("%q: line %d, want %d", c.words, got, c.want)
		}
	}
	marked := Text{Data: []byte("\ufeffcatalog:\n\ufeffx: 1\n\u00e9x: 1\n")}
	for word, want := range map[string]int{"catalog": 1, "x": 2, "\u00e9x": 3} { // over which YAML passes
		if got := marked.LineOf(word); got != want {
			t.Errorf("%q behind a byte order mark: line %d, want %d", word, got, want)
		}
	}
}

// TestWhatLooksLikeNamingARegistry: the keys of the clients' settings, and what is like them.
func TestWhatLooksLikeNamingARegistry(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"registry", "Registries", "npmRegistryServer", "index-url", "extra_index_url", "find-links", "findLinks", "url", "pypi_url", "sources", "userconfig", "npmrcAuthFile", "pypi_mirror"} {
		if !NamesRegistry(key) {
			t.Errorf("%s is taken for harmless", key)
		}
	}
	for _, key := range []string{"", "urllib3", "resources", "save-exact", "nodeLinker", "timeout", "name", "resourceful"} {
		if NamesRegistry(key) {
			t.Errorf("%s is taken for a registry", key)
		}
	}
}

// TestALineIsFoundByItsEscapes: what a file of JSON, TOML or YAML asks for has a line, however it is written there.
func TestALineIsFoundByItsEscapes(t *testing.T) {
	t.Parallel()
	text := Text{Data: []byte("{\n\"\\u0061b\": 1,\n\"x\\x2dy\": 1,\n\"six; os_name == \\\"x\\\"\",\n\"\\U0001F600\", \"\\u000a\", \"@s\\/t\",\n\"plain\"}")}
	for word, want := range map[string]int{`"ab"`: 2, "x-y": 3, `six; os_name == "x"`: 4, "@s/t": 5, "\U0001F600": 5, "plain": 6, "nowhere": 0} {
		if got := text.LineOf(word); got != want {
			t.Errorf("%s: line %d, want %d", word, got, want)
		}
	}
}
