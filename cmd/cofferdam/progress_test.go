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
// the client asks of it (importAdvisories has it import advisories), and a resolver. One that begins with a dot is
// called by that name on whatever it is.
func slowCalls() []string {
	return []string{
		"startDaemon", ".CreateSandbox", ".CreateOnce", ".BuildTemplate", "rewrite.Resolve", ".MakePlan", "f.importAdvisories", ".MakeSnapshot", ".Fork",
		".Controls",
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
			at := slices.IndexFunc(slowCalls(), func(slow string) bool {
				return name == slow || strings.HasPrefix(slow, ".") && strings.HasSuffix(name, slow)
			})
			if at < 0 {
				continue
			}
			seen[slowCalls()[at]]++
			if !call.told {
				t.Errorf("%s: %s is called where nobody tells that it goes on; wrap it in ui.ShowWaiting", files.Position(call.call.Pos()), name)
			}
		}
	}
	if !copyingTells(t) {
		t.Error("copySandbox is taken for one that tells, and does not")
	}
	for _, name := range slowCalls() {
		if seen[name] == 0 {
			t.Errorf("nobody calls %s: take it from the list", name)
		}
	}
}

// copyingTells tells whether copySandbox gives what it is given to the printer.
func copyingTells(t *testing.T) bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "life.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	tells := false
	for _, decl := range file.Decls {
		if f, is := decl.(*ast.FuncDecl); is && f.Name.Name == "copySandbox" {
			for _, call := range callsWithin(&ast.File{Decls: []ast.Decl{f}}) {
				tells = tells || calledName(call.call) == "do" && call.told
			}
		}
	}
	return tells
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
		return "." + f.Sel.Name
	}
	return ""
}
