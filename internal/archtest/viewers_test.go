package archtest_test

import (
	"go/ast"
	"testing"
)

// TestWiresFindSandboxesForSomebody: a wire that gets or lists sandboxes without saying for whom
// would show a token others' sandboxes, or those that stand in for its own. They find them by
// backend.Find and backend.Listed.
func TestWiresFindSandboxesForSomebody(t *testing.T) {
	found, own := 0, 0
	for _, f := range tree(t) {
		if f.test || !below(f.pkg, "internal/serve/httpapi") || below(f.pkg, "internal/serve/httpapi/backend/backendtest") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if calledOf(call, map[string][]string{"backend": {"Find", "Listed"}}) != "" {
				found++
			}
			of, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || of.Sel.Name != "Get" && of.Sel.Name != "List" || !ofSandboxes(of.X) {
				return true
			}
			if f.pkg == "internal/serve/httpapi/backend" {
				own++
				return true
			}
			t.Errorf("%s looks for sandboxes whoever asks: use backend.Find or backend.Listed with a viewer", f.set.Position(call.Pos()))
			return true
		})
	}
	if found < 8 || own != 2 {
		t.Errorf("%d calls find sandboxes for somebody, and backend itself has %d of the others; the rule looks for the wrong names", found, own)
	}
}

// ofSandboxes tells whether an expression is the wires' view of sandboxes, by its name.
func ofSandboxes(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "sandboxes"
	case *ast.SelectorExpr:
		return x.Sel.Name == "Sandboxes" || x.Sel.Name == "sandboxes"
	default:
		return false
	}
}
