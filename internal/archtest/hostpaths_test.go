package archtest_test

import (
	"go/ast"
	"strings"
	"testing"
)

// byName are calls that resolve a path by its name, each of these packages.
func byName() map[string][]string {
	return map[string][]string{
		"os":       {"Open", "OpenFile", "OpenRoot", "ReadFile", "ReadDir", "Stat", "Lstat", "DirFS", "Readlink"},
		"unix":     {"Open", "Openat", "Stat", "Lstat", "Statx", "Mount", "OpenTree", "Access"},
		"filepath": {"EvalSymlinks", "Walk", "WalkDir", "Glob"},
	}
}

// TestSourcesAreOpenedByHostpath: a mount's source is what somebody asked for, and lies where
// others may write. Whoever passes its name to a call that resolves it resolves it once more.
func TestSourcesAreOpenedByHostpath(t *testing.T) {
	sources := 0
	for _, f := range tree(t) {
		if f.test || !below(f.pkg, "internal/engine") && !below(f.pkg, "internal/sandbox") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := calledByName(call)
			for _, arg := range call.Args {
				if !namesSource(arg) {
					continue
				}
				if sources++; name != "" {
					t.Errorf("%s calls %s with a mount's source: open it by internal/hostpath, or by engine.Mount.Open", f.set.Position(call.Pos()), name)
				}
			}
			return true
		})
	}
	if sources == 0 {
		t.Error("no call has a source: the rule looks for the wrong name")
	}
}

// calledByName is a call's name, if it is one of byName.
func calledByName(call *ast.CallExpr) string {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := of.X.(*ast.Ident)
	if !ok {
		return ""
	}
	for _, name := range byName()[pkg.Name] {
		if of.Sel.Name == name {
			return pkg.Name + "." + name
		}
	}
	return ""
}

// namesSource tells whether an expression has a field Source in it.
func namesSource(arg ast.Expr) bool {
	found := false
	ast.Inspect(arg, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && strings.EqualFold(s.Sel.Name, "source") {
			found = true
		}
		return !found
	})
	return found
}
