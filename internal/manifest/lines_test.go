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
