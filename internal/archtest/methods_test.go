package archtest_test

import (
	"go/ast"
	"testing"
)

// mostMethods is how many methods a type may have: one that needs more is several.
const mostMethods = 60

// crowded are the types that have more, with how many at most. They may only lose some.
func crowded() map[string]int {
	return map[string]int{
		"client.Client":                   80, // a method for each call of /v1
		"internal/decide/policy.compiler": 69,
	}
}

// TestNoTypeIsADrawer: a type with very many methods holds a system instead of a thing.
func TestNoTypeIsADrawer(t *testing.T) {
	methods := map[string]int{}
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		for _, decl := range f.syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil {
				methods[f.pkg+"."+receiver(fn)]++
			}
		}
	}
	for name, n := range methods {
		if most := crowded()[name]; n > max(most, mostMethods) {
			t.Errorf("%s has %d methods; at most %d: make types of what belongs together in it", name, n, max(most, mostMethods))
		}
	}
	if methods["internal/decide/admission.Controller"] < 20 {
		t.Errorf("the controller has %d methods; the test looks for the wrong ones", methods["internal/decide/admission.Controller"])
	}
}

// receiver is the name of a method's type.
func receiver(fn *ast.FuncDecl) string {
	of := fn.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.IndexExpr: // of a generic type
		if name, ok := of.X.(*ast.Ident); ok {
			return name.Name
		}
	}
	return "?"
}
