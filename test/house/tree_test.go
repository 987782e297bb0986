package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeTree writes files into a directory of the test's.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMeasures(t *testing.T) {
	t.Parallel()
	var take strings.Builder
	for of := range strings.FieldsSeq("A B C D E F G H I J") {
		take.WriteString("type " + of + " struct{}\n\nfunc (" + of + ") take() {}\n\n")
	}
	dir := writeTree(t, map[string]string{
		"internal/a/a.go":      "// Package a is one.\n//\n// A *thing* is one, a *heap* has many. A\n// pile is the third.\npackage a\n\nimport \"x/internal/b\"\n\n" + take.String() + "func describeAll() { helper() }\n\ntype Wide interface {\n\tb.Narrow\n\tTwo()\n}\n",
		"internal/a/other.go":  "package a\n\nfunc helper() { describeAll() }\n\nfunc lower() {}\n",
		"internal/b/b.go":      "package b\n\ntype Narrow interface{ One() }\n\ntype Large struct{}\n\nfunc (Large) Three() {}\n\nfunc (*Large) Four() {}\n",
		"internal/c/b/b.go":    "package b\n",
		"internal/a/a_test.go": "package a\n\nfunc take() {}\n",
		"test/x/x.go":          "package x\n\nfunc take() {}\n",
		"own/go.mod":           "module own\n",
		"own/own.go":           "package own\n\nfunc take() {}\n",
		"docs/a.md":            "one two three\n",
		"docs/a.txt":           "four\n",
	})
	tree, err := readTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	if shared, short, all := tree.shareNames(); shared != 10 || short != 11 || all != 13 {
		t.Errorf("%d shared, %d short of %d", shared, short, all)
	}
	if n := len(tree.terms); n != 3 {
		t.Errorf("%d words are defined", n)
	}
	if n := tree.countSharedPackageNames(); n != 1 {
		t.Errorf("%d names of packages are shared", n)
	}
	if n := tree.countDoors(); n != 3 {
		t.Errorf("%d doors", n)
	}
	if n, name := tree.findWidestInterface(); n != 2 || filepath.ToSlash(name) != "internal/a.Wide" {
		t.Errorf("the widest interface is %s with %d methods", name, n)
	}
	if n, name := tree.findLargestType(); n != 2 || filepath.ToSlash(name) != "internal/b.Large" {
		t.Errorf("the largest type is %s with %d methods", name, n)
	}
	if back, all := tree.packages[filepath.FromSlash("internal/a")].countBackReferences(); back != 1 || all != 2 {
		t.Errorf("%d of %d references run back", back, all)
	}
	if n, err := countWords(filepath.Join(dir, "docs")); err != nil || n != 3 {
		t.Errorf("%d words: %v", n, err)
	}
}
