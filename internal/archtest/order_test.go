package archtest_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rooms are the packages that hold most of the system; those below them count, too.
func rooms() []string {
	return []string{"cmd/cofferdam", "internal/decide/admission", "internal/packages/gateway", "internal/serve/httpapi", "internal/decide/policy", "internal/sandboxes/sandbox"}
}

// tangled are packages of which more runs back, with how many references at most. They may
// only lose some.
func tangled() map[string]int {
	return map[string]int{
		"internal/decide/policy/expression":  3,
		"internal/sandboxes/sandbox/suspend": 5, // its files are the steps of one state machine
	}
}

// TestFilesReadDownwards: the files of a room have an order in which few of them use what
// one before them declares, so that they can be read from the top: of all references from
// file to file, at most a sixth runs back up, or one.
func TestFilesReadDownwards(t *testing.T) {
	dirs := map[string]bool{}
	for _, f := range tree(t) {
		if !f.test && slices.ContainsFunc(rooms(), func(room string) bool { return below(f.pkg, room) }) {
			dirs[f.pkg] = true
		}
	}
	for dir := range dirs {
		uses := references(t, dir)
		all := 0
		for _, of := range uses {
			for _, used := range of {
				if used {
					all++
				}
			}
		}
		if slices.Contains(rooms(), dir) && all < 100 {
			t.Errorf("%s has %d references between its files; the test looks for the wrong ones", dir, all)
		}
		most := max(all/6, 1, tangled()[dir])
		if back := runningBack(uses, most); back > most {
			t.Errorf("%s: %d of %d references between its files run back up; at most %d: declare things where they are read first", dir, back, all, most)
		}
	}
}

// references tells which file of a package uses something that another one declares, as far
// as that can be seen without what the package imports.
func references(t *testing.T, dir string) (uses [][]bool) {
	t.Helper()
	set := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	place := map[string]int{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		place[path] = len(files)
		files = append(files, file)
	}
	uses = make([][]bool, len(files))
	for i := range uses {
		uses[i] = make([]bool, len(files))
	}
	known := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	checker := types.Config{Importer: nothing{}, Error: func(error) {}}
	_, _ = checker.Check(dir, set, files, known) // what is imported is not there
	for name, object := range known.Uses {
		if _, imported := object.(*types.PkgName); imported || !object.Pos().IsValid() {
			continue
		}
		from, to := place[set.Position(name.Pos()).Filename], place[set.Position(object.Pos()).Filename]
		uses[from][to] = uses[from][to] || from != to
	}
	return uses
}

// nothing imports no package.
type nothing struct{}

func (nothing) Import(string) (*types.Package, error) { return nil, errors.New("not looked at") }

// runningBack counts the references to a file before, in the best order that is found: one
// with so few as are enough, or the best of some.
func runningBack(uses [][]bool, enough int) int {
	fewest := len(uses) * len(uses)
	for first := range uses {
		order := make([]int, len(uses))
		for i := range order {
			order[i] = (first + i) % len(uses)
		}
		for better := true; better; {
			better = false
			for i := range order {
				better = moveUpOrDown(uses, order, i) || better
			}
		}
		if fewest = min(fewest, countBack(uses, order)); fewest <= enough {
			break
		}
	}
	return fewest
}

// moveUpOrDown moves a file to where the fewest references run back; false: it is there.
func moveUpOrDown(uses [][]bool, order []int, i int) bool {
	file, best, to := order[i], 0, i
	// swapped is what it costs, in references back, to have y behind x, which was before it.
	swapped := func(x, y int) (cost int) {
		if uses[x][y] {
			cost--
		}
		if uses[y][x] {
			cost++
		}
		return cost
	}
	for cost, j := 0, i-1; j >= 0; j-- {
		if cost += swapped(file, order[j]); cost < best {
			best, to = cost, j
		}
	}
	for cost, j := 0, i+1; j < len(order); j++ {
		if cost += swapped(order[j], file); cost < best {
			best, to = cost, j
		}
	}
	if best == 0 {
		return false
	}
	copy(order, slices.Insert(slices.Delete(slices.Clone(order), i, i+1), to, file))
	return true
}

func countBack(uses [][]bool, order []int) (n int) {
	for i, later := range order {
		for _, before := range order[:i] {
			if uses[later][before] {
				n++
			}
		}
	}
	return n
}
