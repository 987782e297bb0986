package archtest_test

import (
	"go/ast"
	"path"
	"slices"
	"testing"
)

// TestStartsHaveOneWay: who asks the keeper for a process must not take the end of his own context for
// the process's. Begin sees to that; a sandbox that is nobody's yet is destroyed if its start fails.
func TestStartsHaveOneWay(t *testing.T) {
	homes := map[string]bool{"internal/sandboxes/sandbox/commands/begin.go": false, "internal/sandboxes/sandbox/commands/unclaimed.go": false}
	for _, f := range tree(t) {
		if f.test || below(f.pkg, "internal/sandboxes/engine/enginetest") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || method.Sel.Name != "Exec" {
				return true
			}
			if of, ok := method.X.(*ast.Ident); ok && slices.ContainsFunc(f.imports, func(pkg string) bool { return path.Base(pkg) == of.Name }) {
				return true // of a package, such as unix
			}
			if _, home := homes[f.path]; !home {
				t.Errorf("%s asks the keeper for a process by itself; Table.beginProcess of internal/sandboxes/sandbox/commands does that", f.path)
			}
			homes[f.path] = true
			return true
		})
	}
	for home, seen := range homes {
		if !seen {
			t.Errorf("%s starts nothing; the test looks for the wrong thing", home)
		}
	}
}
