package gocmd

import (
	"go/parser"
	"go/token"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
)

// Tidy implements installer.Tidier.
func (client) Tidy() string { return "go mod tidy" }

// TidiedManifest implements installer.Tidier.
func (client) TidiedManifest() string { return modFile }

// SourceSuffix implements installer.Tidier.
func (client) SourceSuffix() string { return ".go" }

// Unrequired implements installer.Tidier. A path of the standard library has no dot in its first part. A module that is replaced, or
// that is one of the project's own, is there.
func (client) Unrequired(manifests [][]byte, source []byte) (name string, line int) {
	var modules []string
	for _, text := range manifests {
		f, err := modfile.Parse(modFile, text, nil)
		if err != nil {
			return "", 0
		}
		if f.Module != nil {
			modules = append(modules, f.Module.Mod.Path)
		}
		for _, r := range f.Require {
			modules = append(modules, r.Mod.Path)
		}
		for _, r := range f.Replace {
			modules = append(modules, r.Old.Path)
		}
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", source, parser.ImportsOnly)
	if err != nil {
		return "", 0
	}
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		host, _, _ := strings.Cut(imported, "/")
		if err == nil && strings.Contains(host, ".") && !isWithin(imported, modules) {
			return imported, files.Position(spec.Pos()).Line
		}
	}
	return "", 0
}

// isWithin tells whether a package is one of some modules.
func isWithin(imported string, modules []string) bool {
	for _, m := range modules {
		if imported == m || strings.HasPrefix(imported, m+"/") {
			return true
		}
	}
	return false
}
