package main

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// tree is the Go source of a repository without its tests.
type tree struct {
	packages   map[string]*pkg // by directory
	functions  map[string]int  // how many unexported functions and methods have a name
	terms      map[string]bool // that a package comment defines
	interfaces map[string]*ast.InterfaceType
	methods    map[string]int // by DIRECTORY.TYPE
	lines      int
}

// pkg is one directory's package.
type pkg struct {
	name  string
	lines int
	files []*source
}

// source is one file: the names that it declares for its package, and how often it uses those of no declaration of its own.
type source struct {
	declares map[string]bool
	uses     map[string]int
}

// readTree reads the Go files below a directory that belong to its module, without tests and what tests are fed with.
func readTree(dir string) (*tree, error) {
	t := &tree{packages: map[string]*pkg{}, functions: map[string]int{}, terms: map[string]bool{}, interfaces: map[string]*ast.InterfaceType{}, methods: map[string]int{}}
	return t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		inner, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && inner != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || isModule(path)):
			return filepath.SkipDir
		case entry.IsDir() && (inner == "test" || inner == "dist"):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		return t.readFile(path, filepath.Dir(inner))
	})
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// defined is a word that a package comment explains: one in asterisks, or the subject of a sentence
// "A word is the ...". A guard of internal/archtest has the same pattern.
var defined = regexp.MustCompile(`\*([A-Za-z][A-Za-z -]*)\*|(?:^|[.;:] )[Aa]n? ([a-z][a-z-]*(?: [a-z-]+)?) (?:is|are|means) (?:an?|the|one|what|how|all|that)\b`)

func (t *tree) readFile(path, dir string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, data, parser.ParseComments)
	if err != nil {
		return err
	}
	p := t.packages[dir]
	if p == nil {
		p = &pkg{name: file.Name.Name}
		t.packages[dir] = p
	}
	lines := bytes.Count(data, []byte("\n"))
	t.lines += lines
	p.lines += lines
	for _, word := range defined.FindAllStringSubmatch(strings.Join(strings.Fields(file.Doc.Text()), " "), -1) {
		t.terms[strings.ToLower(cmp.Or(word[1], word[2]))] = true
	}
	s := &source{declares: map[string]bool{}, uses: map[string]int{}}
	p.files = append(p.files, s)
	for _, unresolved := range file.Unresolved {
		s.uses[unresolved.Name]++
	}
	for _, d := range file.Decls {
		t.readDeclaration(d, dir, s)
	}
	return nil
}

func (t *tree) readDeclaration(d ast.Decl, dir string, s *source) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if !ast.IsExported(name) && name != "main" && name != "init" {
			t.functions[name]++
		}
		if d.Recv == nil {
			s.declares[name] = true
		} else {
			t.methods[dir+"."+receiver(d.Recv.List[0].Type)]++
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				s.declares[spec.Name.Name] = true
				if i, is := spec.Type.(*ast.InterfaceType); is {
					t.interfaces[dir+"."+spec.Name.Name] = i
				}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					s.declares[name.Name] = true
				}
			}
		}
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// countSharedPackageNames counts the names of packages that stand for more than one, commands aside.
func (t *tree) countSharedPackageNames() (shared int) {
	names := map[string]int{}
	for _, p := range t.packages {
		names[p.name]++
	}
	for name, n := range names {
		if n > 1 && name != "main" {
			shared++
		}
	}
	return shared
}

// countDoors counts the directories of internal/.
func (t *tree) countDoors() int {
	doors := map[string]bool{}
	for dir := range t.packages {
		if rest, is := strings.CutPrefix(filepath.ToSlash(dir), "internal/"); is {
			first, _, _ := strings.Cut(rest, "/")
			doors[first] = true
		}
	}
	return len(doors)
}

// findWidestInterface counts an interface's methods, with those of the interfaces that it embeds.
func (t *tree) findWidestInterface() (most int, widest string) {
	for _, name := range slices.Sorted(maps.Keys(t.interfaces)) {
		if n := t.countMethods(name, 0); n > most {
			most, widest = n, name
		}
	}
	return most, widest
}

func (t *tree) countMethods(name string, depth int) (n int) {
	i := t.interfaces[name]
	if i == nil || depth > 10 {
		return 0
	}
	for _, field := range i.Methods.List {
		switch embedded := field.Type.(type) {
		case *ast.FuncType:
			n += len(field.Names)
		case *ast.Ident:
			n += t.countMethods(name[:strings.LastIndexByte(name, '.')+1]+embedded.Name, depth+1)
		case *ast.SelectorExpr:
			n += t.countMethods(t.findInterface(embedded), depth+1)
		}
	}
	return n
}

// findInterface finds the one interface that a selector can mean, by the last part of its package's directory.
func (t *tree) findInterface(s *ast.SelectorExpr) string {
	of, is := s.X.(*ast.Ident)
	if !is {
		return ""
	}
	for name := range t.interfaces {
		if strings.HasSuffix(name, "/"+of.Name+"."+s.Sel.Name) {
			return name
		}
	}
	return ""
}

// findLargestType finds the type with most methods.
func (t *tree) findLargestType() (most int, largest string) {
	for _, name := range slices.Sorted(maps.Keys(t.methods)) {
		if t.methods[name] > most {
			most, largest = t.methods[name], name
		}
	}
	return most, largest
}

// findLargestPackages finds the n packages with most lines.
func (t *tree) findLargestPackages(n int) []string {
	all := slices.SortedFunc(maps.Keys(t.packages), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.packages[b].lines, t.packages[a].lines), cmp.Compare(a, b))
	})
	return all[:min(n, len(all))]
}

// countBackReferences counts a package's references from file to file, and those that run against the order in which fewest do, as
// far as taking the files with least to refer to away, one by one, finds that order.
func (p *pkg) countBackReferences() (back, all int) {
	refers := make([][]int, len(p.files))
	for i, from := range p.files {
		refers[i] = make([]int, len(p.files))
		for name, n := range from.uses {
			for j, to := range p.files {
				if i != j && to.declares[name] && !from.declares[name] {
					refers[i][j] += n
					all += n
				}
			}
		}
	}
	left := map[int]bool{}
	for i := range p.files {
		left[i] = true
	}
	for len(left) > 0 {
		best, least := -1, 0
		for i := range p.files {
			if !left[i] {
				continue
			}
			n := 0 // references to files that are not below this one
			for j := range left {
				n += refers[i][j]
			}
			if best < 0 || n < least {
				best, least = i, n
			}
		}
		back += least
		delete(left, best)
	}
	return back, all
}

// countWords counts the words of Markdown files, and of those in directories.
func countWords(paths ...string) (words int, err error) {
	for _, top := range paths {
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".md") {
				return err
			}
			data, err := os.ReadFile(path)
			words += len(bytes.Fields(data))
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return words, nil
}
