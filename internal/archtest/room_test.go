package archtest_test

import (
	"go/ast"
	"strings"
	"testing"
)

// heldElsewhere are files of the wires that read something whole, or encode by themselves, and why nothing is
// held by that which no room is taken for.
func heldElsewhere() map[string]string {
	const lines = "one line after another, each of which is gone before the next"
	return map[string]string{
		"io.ReadAll internal/serve/httpapi/e2b/access.go":      "a key of the daemon's own, with a bound",
		"io.ReadAll internal/serve/httpapi/e2b/connect.go":     "through backend.Held, and then TakeDecoded",
		"io.ReadAll internal/serve/httpapi/mcp/room.go":        "through backend.Held, and then TakeDecoded",
		"io.ReadAll internal/serve/httpapi/mcp/files.go":       "a file of a sandbox, up to a megabyte, for one of a peer's calls",
		"json.NewEncoder internal/serve/httpapi/advisories.go": lines, "json.NewEncoder internal/serve/httpapi/approvals.go": lines, "json.NewEncoder internal/serve/httpapi/templates.go": lines,
		"json.NewEncoder internal/serve/httpapi/records.go": lines, "json.NewEncoder internal/serve/httpapi/files.go": lines, "json.NewEncoder internal/serve/httpapi/audit.go": lines,
		"json.NewEncoder internal/serve/httpapi/events.go":    lines,
		"json.NewEncoder internal/serve/httpapi/mcp/stdio.go": "one short answer, to the client that started this program",
		"json.NewEncoder internal/serve/httpapi/mcp/tools.go": "one bounded result, for which counted takes room",
	}
}

// TestWiresHoldNothingWithoutRoom: a request is read by backend.ReadJSON, and a value answered by
// backend.WriteJSON, which count it against its token's room and give it a deadline. A wire that does either by
// itself says why.
func TestWiresHoldNothingWithoutRoom(t *testing.T) {
	t.Parallel()
	reasons, seen := heldElsewhere(), map[string]bool{}
	for _, f := range tree(t) {
		if f.test || !below(f.pkg, "internal/serve/httpapi") || below(f.pkg, "internal/serve/httpapi/backend") {
			continue
		}
		for _, call := range wholeCalls(f.syntax) {
			where := call + " " + f.path
			if seen[where] = true; reasons[where] == "" {
				t.Errorf("%s calls %s; use backend.ReadJSON and backend.WriteJSON, or say in heldElsewhere why nothing is held", f.path, call)
			}
		}
	}
	for where := range reasons {
		if !seen[where] {
			t.Errorf("heldElsewhere has %q, which is not there any more", where)
		}
	}
}

// wholeCalls are the calls in a file that read something whole or encode a value to a writer.
func wholeCalls(file *ast.File) []string {
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := selector.X.(*ast.Ident); ok {
			name := pkg.Name + "." + selector.Sel.Name
			if name == "io.ReadAll" || strings.HasSuffix(name, "json.NewEncoder") || name == "json.MarshalWrite" {
				found = append(found, name)
			}
		}
		return true
	})
	return found
}
