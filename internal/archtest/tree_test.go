package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/cofferdam-dev/cofferdam"

// file is one Go file of the module.
type file struct {
	path    string // relative to the root
	pkg     string // import path below the module, "" for the root
	test    bool
	syntax  *ast.File
	set     *token.FileSet // has syntax's positions
	imports []string
}

// tree is every Go file of the module, parsed once for all tests, which change
// nothing of it; the nested module runsc/ is not part of it.
func tree(t *testing.T) []file {
	t.Helper()
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 50 {
		t.Fatalf("found only %d Go files; the walk is broken", len(files))
	}
	return slices.Clone(files)
}

var parsed = sync.OnceValues(func() ([]file, error) {
	root := filepath.Join("..", "..")
	var files []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if rel == "runsc" || d.Name() == "testdata" || (strings.HasPrefix(d.Name(), ".") && rel != ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		f := file{path: rel, pkg: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(rel, "_test.go"), syntax: syntax, set: set}
		for _, spec := range syntax.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			f.imports = append(f.imports, imp)
		}
		files = append(files, f)
		return nil
	})
	return files, err
})

// below reports whether pkg is dir or lies in it.
func below(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }
