package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// slowCalls are what a person may wait minutes for, whoever makes the call: a daemon that starts, what
// the client asks of it (take has it import advisories), and a resolver.
func slowCalls() []string {
	return []string{
		"startDaemon", "c.CreateSandbox", "client.CreateSandbox", "c.CreateOnce", "c.BuildTemplate", "rewrite.Resolve", "client.MakePlan",
		"f.take", "c.MakeSnapshot", "c.Fork", "client.Controls",
	}
}

// tellers say that what they are given goes on: the printer, and what hands it over to the printer.
func tellers() []string { return []string{"ui.ShowWaiting", "copySandbox"} }

// TestNoStepIsSilent: each of these calls is made where the one printer of progress tells of it, each
// second at a terminal and each quarter of a minute elsewhere (ui.TestALogIsNotSilent says how).
// cofferdam run, plan, policy suggest and template build stand on them.
func TestNoStepIsSilent(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range callsWithin(file) {
			name := calledName(call.call)
			if !slices.Contains(slowCalls(), name) {
				continue
			}
			seen[name]++
			if !call.told {
				t.Errorf("%s: %s is called where nobody tells that it goes on; wrap it in ui.ShowWaiting", files.Position(call.call.Pos()), name)
			}
		}
	}
	for _, name := range slowCalls() {
		if seen[name] == 0 {
			t.Errorf("nobody calls %s: take it from the list", name)
		}
	}
}

// toldCall is a call, and whether it is given to a teller or is in a function that makes ui.NewSteps.
type toldCall struct {
	call *ast.CallExpr
	told bool
}

func callsWithin(file *ast.File) (calls []toldCall) {
	for _, decl := range file.Decls {
		steps := false
		ast.Inspect(decl, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			steps = steps || is && calledName(call) == "ui.NewSteps"
			return true
		})
		var look func(n ast.Node, told bool)
		look = func(n ast.Node, told bool) {
			ast.Inspect(n, func(inner ast.Node) bool {
				call, is := inner.(*ast.CallExpr)
				if !is || inner == n {
					return true
				}
				calls = append(calls, toldCall{call, told})
				look(call, told || slices.Contains(tellers(), calledName(call)))
				return false
			})
		}
		look(decl, steps)
	}
	return calls
}

// calledName is what is called, with the last name of whose it is: "client.CreateSandbox".
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		switch of := f.X.(type) {
		case *ast.Ident:
			return of.Name + "." + f.Sel.Name
		case *ast.SelectorExpr:
			return of.Sel.Name + "." + f.Sel.Name
		}
	}
	return ""
}
