package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// ownGoroutines are the packages below internal that may start goroutines without
// package safego: it itself, what runs inside of a sandbox or as a command of its
// own, and what only tests use.
func ownGoroutines() []string {
	return []string{
		"internal/kit/safego", "internal/sandboxes/guest", "internal/serve/selftest", "internal/sandboxes/engine/enginetest",
		"internal/serve/httpapi/backend/backendtest", "internal/sandboxes/sandbox/agenthome/agenthometest", "internal/sandboxes/sandbox/journal/journaltest", "internal/packages/upstream/liar",
	}
}

// bare is how a node starts a goroutine that nothing shields; "" if it does not.
func bare(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a go statement; safego.Go shields it"
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return ""
		}
		if from, ok := sel.X.(*ast.Ident); ok && from.Name == "safego" {
			return ""
		}
		return bareCall(sel.Sel.Name, n)
	case *ast.SelectorExpr:
		if n.Sel.Name == "TryGo" {
			return "TryGo; safego.In shields it"
		}
	case *ast.KeyValueExpr:
		return bareDial(n)
	}
	return ""
}

// bareDial is a dial function of a transport, which calls it in a goroutine of its own. That of
// a library's dialer has no code of ours in it.
func bareDial(n *ast.KeyValueExpr) string {
	key, ok := n.Key.(*ast.Ident)
	if !ok || key.Name != "DialContext" && key.Name != "DialTLSContext" {
		return ""
	}
	of := n.Value
	if call, ok := of.(*ast.CallExpr); ok {
		of = call.Fun
	}
	if sel, ok := of.(*ast.SelectorExpr); ok && (sel.Sel.Name == "ShieldDial" || sel.Sel.Name == "DialContext") {
		return ""
	}
	return "a dial function; safego.ShieldDial shields it"
}

func bareCall(name string, call *ast.CallExpr) string {
	switch name {
	case "AfterFunc":
		return "AfterFunc; safego.After, When and Until shield it"
	case "Go":
		if len(call.Args) == 1 && triesAtOnce(call.Args[0]) {
			return "" // of a group whose goroutines return errors
		}
		return "a group's Go; safego.In shields it, and in a group of errors safego.Try"
	}
	return ""
}

// triesAtOnce tells a function literal that does nothing but return safego.Try.
func triesAtOnce(n ast.Expr) bool {
	lit, ok := n.(*ast.FuncLit)
	if !ok || len(lit.Body.List) == 0 {
		return false
	}
	found := false
	for _, stmt := range lit.Body.List {
		ast.Inspect(stmt, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
				if from, ok := sel.X.(*ast.Ident); ok && from.Name == "safego" && sel.Sel.Name == "Try" {
					found = true
				}
			}
			return true
		})
	}
	return found
}

// TestGoroutinesAreErrands: nothing in the daemon, the keeper and the gateway starts a
// goroutine of its own, whose panic would end the process with all of its sandboxes.
func TestGoroutinesAreErrands(t *testing.T) {
	users := 0
	for _, f := range tree(t) {
		if f.test || !below(f.pkg, "internal") {
			continue
		}
		exempt := false
		for _, dir := range ownGoroutines() {
			exempt = exempt || below(f.pkg, dir)
		}
		if exempt {
			continue
		}
		for _, imp := range f.imports {
			if strings.HasSuffix(imp, "/internal/kit/safego") {
				users++
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if how := bare(n); how != "" {
				t.Errorf("%s starts a goroutine with %s", f.path, how)
			}
			return true
		})
	}
	if users < 20 {
		t.Errorf("only %d files use package safego; the test looks for the wrong name", users)
	}
}

// TestBareGoroutinesAreFound: the control of the test above.
func TestBareGoroutinesAreFound(t *testing.T) {
	for text, want := range map[string]bool{
		"go f()":                            true,
		"group.Go(f)":                       true,
		"m.group.Go(func() { f() })":        true,
		"time.AfterFunc(d, f)":              true,
		"stop := context.AfterFunc(ctx, f)": true,
		"safego.Go(f)":                      false,
		"safego.In(&group, f)":              false,
		"f()":                               false,
		"_ = T{DialContext: d.dial}":        true,
		"_ = T{DialTLSContext: func() {}}":  true,
		"_ = T{DialContext: safego.ShieldDial(d.dial)}":   false,
		"_ = T{DialContext: (&net.Dialer{}).DialContext}": false,
		"group.Go(func() error { return g() })":           true,
		"group.Go(func() error { return safego.Try(g) })": false,
	} {
		found := false
		ast.Inspect(statement(t, text), func(n ast.Node) bool {
			found = found || n != nil && bare(n) != ""
			return true
		})
		if found != want {
			t.Errorf("%s: %v", text, found)
		}
	}
}

// statement parses one.
func statement(t *testing.T, text string) ast.Node {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+text+"\n}", 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
