package httpapi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/api"
)

// TestTheRoutesAreInTheDocs: the table of docs/api.md is that of the routes.
// COFFERDAM_UPDATE=1 writes it anew.
func TestTheRoutesAreInTheDocs(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- routes: made by a test of internal/serve/httpapi -->\n", "<!-- end -->\n"
	var doc struct {
		Paths map[string]map[string]yaml.Node `yaml:"paths"`
	}
	if err := yaml.Unmarshal(api.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	summary := func(method, path string) string {
		var operation struct {
			Summary string `yaml:"summary"`
		}
		node := doc.Paths[path][strings.ToLower(method)]
		if err := node.Decode(&operation); err != nil {
			t.Fatal(err)
		}
		return operation.Summary
	}
	var b strings.Builder
	b.WriteString("| route | what | for |\n| --- | --- | --- |\n")
	for _, r := range New(Config{}).routes() {
		method, path, _ := strings.Cut(r.pattern, " ")
		b.WriteString("| `" + r.pattern + "` | " + summary(method, path) + " | " + r.who.String() + " |\n")
	}
	path := filepath.Join("..", "..", "..", "docs", "api.md")
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(have), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("docs/api.md has no place for the table")
	}
	want := before + begin + b.String() + end + after
	if os.Getenv("COFFERDAM_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(have), want); diff != "" {
		t.Errorf("COFFERDAM_UPDATE=1 writes the table:\n%s", diff)
	}
}
