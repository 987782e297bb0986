package archtest_test

import (
	"go/ast"
	"strings"
	"testing"
)

// decideNothing are the files of the command line that read what a person names without asking whether they have seen it as
// it is (readDeciding, checkSeen), by the function with which they do, and why nothing is decided by it.
func decideNothing() map[string]string {
	return map[string]string{
		"decidingfile.go readDocument":  "here it is asked, and what is allowed is read",
		"policyfile.go readDocument":    "loadPolicy, whose callers are looked at as well",
		"policyfile.go loadPolicy":      "loadDeciding, which asks",
		"policy.go loadPolicy":          "policy check says what is in it",
		"policyexplain.go loadPolicy":   "policy explain says what it would decide",
		"policyimport.go readDocument":  "what comes of it is written for a person to read",
		"projectimport.go readDocument": "what comes of it is a cofferdam.yaml, which a person has to allow",
		"call.go readDocument":          "code that runs apart, whoever wrote it",
	}
}

// TestFilesThatDecideHaveBeenSeen: a file that a flag names may lie where an agent could write.
// Code that reads one that decides something does so by readDeciding or loadDeciding.
func TestFilesThatDecideHaveBeenSeen(t *testing.T) {
	used, asking := map[string]bool{}, 0
	for _, f := range tree(t) {
		if f.test || f.pkg != "cmd/cofferdam" {
			continue
		}
		file := f.path[strings.LastIndexByte(f.path, '/')+1:]
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name, ok := call.Fun.(*ast.Ident)
			if !ok {
				return true
			}
			switch key := file + " " + name.Name; {
			case name.Name == "readDeciding" || name.Name == "loadDeciding":
				asking++
			case name.Name != "readDocument" && name.Name != "loadPolicy":
			case decideNothing()[key] != "":
				used[key] = true
			default:
				t.Errorf("%s calls %s: read what decides by readDeciding or loadDeciding, or say in decideNothing why it decides nothing", f.set.Position(call.Pos()), name.Name)
			}
			return true
		})
	}
	if asking < 6 {
		t.Errorf("only %d files that decide are read: the rule looks for the wrong names", asking)
	}
	for key := range decideNothing() {
		if !used[key] {
			t.Errorf("nobody calls %s any more; take it out of decideNothing", key)
		}
	}
}
