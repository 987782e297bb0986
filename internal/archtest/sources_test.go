package archtest_test

import (
	"go/ast"
	"strings"
	"testing"
)

// TestSourcesFetchOnlyToShow: a source of secrets that needs another secret to get its own fetches that by
// secret.FetchToShow, so that the broker knows what is looked for in answers. The broker itself is the one
// other caller.
func TestSourcesFetchOnlyToShow(t *testing.T) {
	var callers []string
	for _, f := range tree(t) {
		if f.test || !usesSources(f.syntax) && !below(f.pkg, "internal/decide/secret") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if called, is := n.(*ast.SelectorExpr); is && called.Sel.Name == "Fetch" {
				callers = append(callers, f.path)
			}
			return true
		})
	}
	want := map[string]bool{"internal/decide/secret/shown.go": true, "internal/decide/secret/sourcetest/sourcetest.go": true}
	for _, path := range callers {
		if !want[path] {
			t.Errorf("%s fetches from a source by itself: what it shows somebody is looked for in no answer; call secret.FetchToShow", path)
		}
	}
	for path := range want {
		if !strings.Contains(strings.Join(callers, "\n"), path) {
			t.Errorf("%s fetches from no source any more: say so here", path)
		}
	}
}

// usesSources tells whether a file imports what has the type of sources.
func usesSources(f *ast.File) bool {
	for _, one := range f.Imports {
		if strings.HasSuffix(one.Path.Value, `/internal/decide/secret"`) {
			return true
		}
	}
	return false
}
