package archtest_test

import (
	"go/ast"
	"slices"
	"testing"
)

// TestRecordsAreMaskedBeforeTheyAreCut: whoever makes records, or what becomes one, cuts texts
// with redact.Cut: a part of a secret has no form by which the log knows it.
func TestRecordsAreMaskedBeforeTheyAreCut(t *testing.T) {
	t.Parallel()
	writers := []string{"internal/decide/admission", "internal/network/egress", "internal/packages/gateway", "internal/packages/ecosystem"}
	masked := 0
	for _, f := range tree(t) {
		if f.test || !slices.ContainsFunc(writers, func(w string) bool { return below(f.pkg, w) }) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, ok := sel.X.(*ast.Ident)
			switch {
			case !ok:
			case from.Name == "excerpt" && (sel.Sel.Name == "Of" || sel.Sel.Name == "Sealed"):
				t.Errorf("%s cuts a text that may come on record; redact.Cut and redact.Sealed mask it first", f.path)
			case from.Name == "redact" && sel.Sel.Name == "Cut":
				masked++
			}
			return true
		})
	}
	if masked < 50 {
		t.Errorf("only %d cuts are found: the test looks for the wrong name", masked)
	}
}
