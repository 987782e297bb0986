package archtest_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// How long a function and a file of the product may be. A text of several lines inside a
// function, such as a command's help, does not count: it is no logic.
const (
	mostLines     = 45
	mostFileLines = 400
)

// long are the functions that may be longer, with why they read better whole.
func long() map[string]string {
	return map[string]string{
		"internal/serve/httpapi.Server.routes":        "the table of /v1: a line for each call",
		"internal/sandboxes/guest.reseeder":           "the bytes of one small library, in their order",
		"internal/decide/admission.summary.addRecord": "a case for each outcome that a record can have",
		"internal/sandboxes/keeper.Server.dispatchTo": "a case for each verb",
		"internal/decide/advisory.countEdits":         "one algorithm over three rows of a table",
	}
}

// TestFunctionsAreShort: a function can be read without scrolling.
func TestFunctionsAreShort(t *testing.T) {
	found := map[string]int{}
	for _, f := range tree(t) {
		if !f.product() {
			continue
		}
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := f.pkg + "." + fn.Name.Name
			if fn.Recv != nil {
				name = f.pkg + "." + receiver(fn) + "." + fn.Name.Name
			}
			n := f.lines(fn) - f.textLines(fn)
			found[name] = n
			if n > mostLines && long()[name] == "" {
				t.Errorf("%s: %s has %d lines; at most %d: make functions of its steps", f.path, name, n, mostLines)
			}
		}
	}
	for name := range long() {
		if found[name] <= mostLines {
			t.Errorf("%s has %d lines and needs no exception any more", name, found[name])
		}
	}
}

// TestFilesAreShort: a file is about one thing.
func TestFilesAreShort(t *testing.T) {
	looked := 0
	for _, f := range tree(t) {
		if !f.product() {
			continue
		}
		looked++
		data, err := os.ReadFile(filepath.Join("..", "..", f.path))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(data), "\n"); n > mostFileLines {
			t.Errorf("%s has %d lines; at most %d: split it by what it is about", f.path, n, mostFileLines)
		}
	}
	if looked < 500 {
		t.Errorf("the test looks at %d files", looked)
	}
}

// product tells whether a file is part of what runs. Tests, the suites that packages share
// with their tests, and measurements read from top to bottom instead.
func (f file) product() bool {
	return !f.test && !below(f.pkg, "test") && !below(f.pkg, "bench") && !strings.HasSuffix(f.pkg, "test")
}

func (f file) lines(n ast.Node) int {
	return f.set.Position(n.End()).Line - f.set.Position(n.Pos()).Line + 1
}

// textLines are the lines of texts that have more than one.
func (f file) textLines(fn *ast.FuncDecl) (n int) {
	ast.Inspect(fn, func(node ast.Node) bool {
		if lit, ok := node.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			n += strings.Count(lit.Value, "\n")
		}
		return true
	})
	return n
}
