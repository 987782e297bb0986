package archtest_test

import (
	"go/ast"
	"strings"
	"testing"
)

// ownAccepts are the files that take what comes without package accept, and why they may.
func ownAccepts() map[string]string {
	return map[string]string{
		"internal/sandboxes/keeper/uplink.go":     "streams of a channel, which take no descriptor",
		"internal/sandboxes/guest/agent.go":       "the same, of its other end",
		"internal/sandboxes/sshserver/server.go":  "channels of one client",
		"internal/sandboxes/sshserver/forward.go": "the same",
		"internal/serve/daemon/clock.go":          "it accepts a time, and no connection",
	}
}

// TestAcceptingGoesOn: who takes connections in a loop does so from a listener of accept.Patient, so
// that no failure that ends by itself ends it. A type that is a listener itself hands failures on, to who
// made a patient one of it.
func TestAcceptingGoesOn(t *testing.T) {
	seen := 0
	own := ownAccepts()
	for _, f := range tree(t) {
		if f.test || !below(f.pkg, "internal") && !below(f.pkg, "cmd") || below(f.pkg, "internal/kit/accept") || below(f.pkg, "internal/sandboxes/engine/enginetest") || strings.HasSuffix(f.pkg, "test") {
			continue
		}
		takes, patient := accepting(f.syntax)
		if !takes {
			continue
		}
		if _, excused := own[f.path]; excused {
			delete(own, f.path)
			continue
		}
		seen++
		if !patient {
			t.Errorf("%s takes connections from a listener that accept.Patient has not made", f.path)
		}
	}
	if seen < 5 {
		t.Errorf("%d files take connections; the test looks for the wrong thing", seen)
	}
	for path := range own {
		t.Errorf("%s is excused and takes nothing", path)
	}
}

// accepting tells whether a file calls Accept outside of a method of that name, and whether it
// makes a patient listener.
func accepting(file *ast.File) (takes, patient bool) {
	for _, decl := range file.Decls {
		fn, isFunc := decl.(*ast.FuncDecl)
		wraps := isFunc && fn.Name.Name == "Accept"
		ast.Inspect(decl, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			takes = takes || sel.Sel.Name == "Accept" && !wraps
			from, ok := sel.X.(*ast.Ident)
			patient = patient || ok && from.Name == "accept" && sel.Sel.Name == "Patient"
			return true
		})
	}
	return takes, patient
}
