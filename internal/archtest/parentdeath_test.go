package archtest_test

import (
	"go/ast"
	"testing"
)

// TestChildrenOfAThreadHaveOneThatStays: the kernel's signal at a parent's death comes when the thread ends that started
// the child, and some goroutines end their threads. So a file that asks for the signal locks a thread for the child's life.
func TestChildrenOfAThreadHaveOneThatStays(t *testing.T) {
	seen := 0
	for _, f := range tree(t) {
		asks, locks := false, false
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				asks = asks || id.Name == "Pdeathsig" || id.Name == "PR_SET_PDEATHSIG"
				locks = locks || id.Name == "LockOSThread"
			}
			return true
		})
		if !asks {
			continue
		}
		if seen++; !locks {
			t.Errorf("%s asks for a signal at its parent's death, which comes with the end of any thread; lock the one that starts the child", f.path)
		}
	}
	if seen == 0 {
		t.Error("no file asks for that signal; the test looks for the wrong thing")
	}
}
