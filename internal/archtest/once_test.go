package archtest_test

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// TestTextIsShortenedInOnePlace: whoever cuts a text and puts "..." behind it cuts letters
// in two sooner or later.
func TestTextIsShortenedInOnePlace(t *testing.T) {
	homes := []string{"internal/kit/text", "internal/serve/ui"} // the latter cuts cells, not bytes
	seen := 0
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		home := below(f.pkg, homes[0]) || below(f.pkg, homes[1])
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			sum, ok := n.(*ast.BinaryExpr)
			if !ok || sum.Op != token.ADD {
				return true
			}
			end, ok := sum.Y.(*ast.BasicLit)
			if !ok || end.Value != `"..."` || !cuts(sum.X) {
				return true
			}
			if home {
				seen++
			} else {
				t.Errorf("%s shortens a text by itself; text.Shorten does that", f.path)
			}
			return true
		})
	}
	if seen == 0 {
		t.Error("no text is shortened; the test looks for the wrong thing")
	}
}

// cuts reports whether an expression has a part of another one.
func cuts(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		_, is := n.(*ast.SliceExpr)
		found = found || is
		return true
	})
	return found
}

// TestOneCacheInMemory: what forgets the least recently used is internal/kit/lru.
func TestOneCacheInMemory(t *testing.T) {
	for _, f := range tree(t) {
		for _, imp := range f.imports {
			// strangers.go has a queue: the oldest goes first, whatever is used. store.go forgets
			// files, of which it passes over those that are open or can't be moved.
			if imp == "container/list" && !below(f.pkg, "internal/kit/lru") && !strings.HasSuffix(f.path, "daemon/strangers.go") && f.path != "internal/packages/cache/store.go" {
				t.Errorf("%s keeps a list of its own; a cache is lru.Cache", f.path)
			}
		}
	}
}

// TestOneTableOfFaults: what a category is called outside stands in fault.Kinds alone.
func TestOneTableOfFaults(t *testing.T) {
	const few = 4
	for _, f := range tree(t) {
		if f.test || below(f.pkg, "internal/kit/fault") || below(f.pkg, "internal/sandboxes/engine/enginetest") {
			continue
		}
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Name.Name == "Category" { // of channel.ErrorCode: a guest's word for one
				continue
			}
			categories := map[string]bool{}
			ast.Inspect(fn, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if from, ok := sel.X.(*ast.Ident); ok && from.Name == "fault" && strings.HasPrefix(sel.Sel.Name, "Err") {
						categories[sel.Sel.Name] = true
					}
				}
				return true
			})
			if len(categories) > few {
				t.Errorf("%s: %s knows %d categories; fault.KindOf has the table", f.path, fn.Name.Name, len(categories))
			}
		}
	}
}

// TestRequestsArePassedOnInOneWay: whoever hands a request's body to another server answers it by httphead.Passing, or
// an answer that comes before the body's end is cut.
func TestRequestsArePassedOnInOneWay(t *testing.T) {
	seen := 0
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		proxies, passes := false, false
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				proxies = proxies || s.Sel.Name == "ReverseProxy"
				passes = passes || s.Sel.Name == "NewPassing"
			}
			return true
		})
		if proxies {
			seen++
		}
		if proxies && !passes {
			t.Errorf("%s passes requests on, and does not answer them by httphead.NewPassing", f.path)
		}
	}
	if seen == 0 {
		t.Error("no requests are passed on; the test looks for the wrong thing")
	}
}
