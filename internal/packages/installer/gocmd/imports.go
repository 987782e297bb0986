package gocmd

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// Tidy implements installer.Tidier.
func (client) Tidy() string { return "go mod tidy" }

// TidiedManifest implements installer.Tidier.
func (client) TidiedManifest() string { return modFile }

// IsSource implements installer.Tidier.
func (client) IsSource(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, ".")
}

// Unrequired implements installer.Tidier. A module that is replaced, or that is one of the project's own, is there. A go.mod that has
// go ignore directories says nothing, since those would have to be found.
func (client) Unrequired(manifests [][]byte) func(source []byte) (name string, line int) {
	modules := map[string]bool{}
	for _, text := range manifests {
		f, err := modfile.Parse(modFile, text, nil)
		if err != nil || len(f.Ignore) > 0 {
			return func([]byte) (string, int) { return "", 0 }
		}
		if f.Module != nil {
			modules[f.Module.Mod.Path] = true
		}
		for _, r := range f.Require {
			modules[r.Mod.Path] = true
		}
		for _, r := range f.Replace {
			modules[r.Old.Path] = true
		}
	}
	return func(source []byte) (string, int) { return missing(modules, source) }
}

// missing is the first import of a source file that is of none of some modules. A path of the standard library has no dot in its first part.
func missing(modules map[string]bool, source []byte) (name string, line int) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", source, parser.ImportsOnly|parser.ParseComments)
	if err != nil || isIgnored(f) {
		return "", 0
	}
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		host, _, _ := strings.Cut(imported, "/")
		if err == nil && strings.Contains(host, ".") && module.CheckImportPath(imported) == nil && !isWithin(imported, modules) {
			return imported, files.PositionFor(spec.Pos(), false).Line // whatever a comment says of the line
		}
	}
	return "", 0
}

// isIgnored tells whether go mod tidy passes over a file for a build constraint: it takes each tag for true or false as it suits, but for
// "ignore", which is false.
func isIgnored(f *ast.File) bool {
	for _, group := range f.Comments {
		for _, comment := range group.List {
			expression, err := constraint.Parse(comment.Text)
			if comment.Pos() < f.Package && err == nil && !holds(expression, true) {
				return true
			}
		}
	}
	return false
}

// holds evaluates a constraint with all tags but "ignore" as suits.
func holds(x constraint.Expr, suits bool) bool {
	switch x := x.(type) {
	case *constraint.TagExpr:
		return x.Tag != "ignore" && suits
	case *constraint.NotExpr:
		return !holds(x.X, !suits)
	case *constraint.AndExpr:
		return holds(x.X, suits) && holds(x.Y, suits)
	case *constraint.OrExpr:
		return holds(x.X, suits) || holds(x.Y, suits)
	}
	return suits
}

// isWithin tells whether a package is one of some modules.
func isWithin(imported string, modules map[string]bool) bool {
	for at := range imported {
		if imported[at] == '/' && modules[imported[:at]] {
			return true
		}
	}
	return modules[imported]
}
