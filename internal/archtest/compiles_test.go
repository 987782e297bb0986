package archtest_test

import (
	"go/ast"
	"testing"
)

// TestExpressionsAreCompiledOnce: a regular expression is compiled when the program starts. In a function it
// would be compiled for each item of a list that a client sizes, which costs a thousand times what matching
// it does.
func TestExpressionsAreCompiledOnce(t *testing.T) {
	homes := map[string]bool{ // that compile what is known at run time only, or once for all that follows
		"internal/decide/dlp/secrets/secrets.go":             false,
		"internal/decide/dlp/secrets/own.go":                 false,
		"internal/decide/dlp/personal/personal.go":           false,
		"internal/sandboxes/sandbox/mountpolicy/patterns.go": false, // an ignore file's, with bounds of how many and how long
		"internal/serve/config/plainly.go":                   false, // words a mistake in a file, before the program ends
		"internal/sandboxes/engine/enginetest/syscalls.go":   false,
		"internal/decide/lockfile/lockfiletest/suite.go":     false,
	}
	atStart := 0
	for _, f := range tree(t) {
		if f.test || below(f.pkg, "packaging") { // which runs once, where the product is built
			continue
		}
		for _, decl := range f.syntax.Decls {
			_, inside := decl.(*ast.FuncDecl)
			ast.Inspect(decl, func(n ast.Node) bool {
				of, ok := n.(*ast.SelectorExpr)
				if !ok || of.Sel.Name != "MustCompile" && of.Sel.Name != "Compile" {
					return true
				}
				if pkg, ok := of.X.(*ast.Ident); !ok || pkg.Name != "regexp" {
					return true
				}
				if _, home := homes[f.path]; !home && inside {
					t.Errorf("%s compiles a regular expression in a function; make it a variable of the package", f.set.Position(of.Pos()))
				}
				if inside {
					homes[f.path] = true
				} else {
					atStart++
				}
				return true
			})
		}
	}
	for home, seen := range homes {
		if !seen {
			t.Errorf("%s compiles nothing; the test looks for the wrong thing", home)
		}
	}
	if atStart < 50 {
		t.Errorf("%d expressions are compiled at the start; the test looks for the wrong thing", atStart)
	}
}

// TestRequestsAreCounted: all of a request's lists are counted before a handler works through them: by
// backend.ReadJSON, and wherever else a request is decoded.
func TestRequestsAreCounted(t *testing.T) {
	counting := map[string]bool{"internal/serve/httpapi/e2b/connect_json.go": false, "internal/serve/httpapi/mcp/tools.go": false}
	for _, f := range tree(t) {
		if f.test || !below(f.pkg, "internal/serve/httpapi") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if of, ok := n.(*ast.SelectorExpr); ok && of.Sel.Name == "CheckCounts" {
				counting[f.path] = true
			}
			return true
		})
	}
	for place, seen := range counting {
		if !seen {
			t.Errorf("%s decodes requests, and does not count their lists", place)
		}
	}
}
