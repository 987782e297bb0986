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
		"internal/scan/secrets/secrets.go":        false,
		"internal/scan/secrets/own.go":            false,
		"internal/scan/personal/personal.go":      false,
		"internal/config/config.go":               false, // words a mistake in a file, before the program ends
		"internal/engine/enginetest/syscalls.go":  false,
		"internal/lockfile/lockfiletest/suite.go": false,
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

// TestRequestsAreCounted: all of a request's lists are counted before a handler works through them, so a
// request is decoded in few places, each of which counts.
func TestRequestsAreCounted(t *testing.T) {
	homes := map[string]bool{ // and where its cells go is bounded by what they take
		"internal/httpapi/server.go": false, "internal/httpapi/e2b/errors.go": false, "internal/httpapi/e2b/cells.go": false,
	}
	counting := map[string]bool{
		"internal/httpapi/server.go": false, "internal/httpapi/e2b/errors.go": false, "internal/httpapi/e2b/connect_json.go": false, "internal/httpapi/mcp/tools.go": false,
	}
	for _, f := range tree(t) {
		if f.test || !below(f.pkg, "internal/httpapi") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			of, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := of.X.(*ast.Ident); !ok || pkg.Name != "backend" {
				return true
			}
			switch of.Sel.Name {
			case "ReadJSON":
				if _, home := homes[f.path]; !home {
					t.Errorf("%s decodes a request by itself; readJSON counts its lists, too", f.set.Position(of.Pos()))
				}
				homes[f.path] = true
			case "CheckCounts":
				counting[f.path] = true
			}
			return true
		})
	}
	for _, places := range []map[string]bool{homes, counting} {
		for place, seen := range places {
			if !seen {
				t.Errorf("%s decodes no request, or does not count its lists", place)
			}
		}
	}
}
