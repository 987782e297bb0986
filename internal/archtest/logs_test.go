package archtest_test

import (
	"go/ast"
	"slices"
	"testing"
)

// TestLogsAreLimited: what a guest or a client has a process log is bounded where loggers are
// made, so that nobody who logs can forget it. Nobody else makes one that writes.
func TestLogsAreLimited(t *testing.T) {
	t.Parallel()
	makers := []string{"internal/serve/telemetry", "cmd/cofferdam-guest", "internal/sandboxes/engine/enginetest"}
	found := 0
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, ok := sel.X.(*ast.Ident)
			if !ok || from.Name != "slog" || sel.Sel.Name != "NewTextHandler" && sel.Sel.Name != "NewJSONHandler" {
				return true
			}
			found++
			if !slices.Contains(makers, f.pkg) {
				t.Errorf("%s makes a log of its own; telemetry.NewLogger makes them, and limits what is written", f.path)
			}
			return true
		})
	}
	if found < 3 {
		t.Errorf("only %d are found: the test looks for the wrong name", found)
	}
}
