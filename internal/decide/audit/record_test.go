package audit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// TestTheListsOfWordsAreWhole: what a record can have as its outcome or kind is listed, once
// each. Only constants are words of the log, so a word that is missing here was declared.
func TestTheListsOfWordsAreWhole(t *testing.T) {
	t.Parallel()
	declared := constants(t)
	for name, listed := range map[string][]string{"Outcome": texts(audit.Outcomes()), "Kind": texts(audit.Kinds())} {
		slices.Sort(listed)
		if want := declared[name]; len(want) == 0 || !slices.Equal(listed, want) {
			t.Errorf("of type %s are listed\n%q, and declared\n%q", name, listed, want)
		}
	}
}

func texts[T ~string](values []T) []string {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}

// constants are the values of the package's string constants, sorted, by the name of their type.
func constants(t *testing.T) map[string][]string {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is || len(spec.Values) != 1 {
				return true
			}
			of, named := spec.Type.(*ast.Ident)
			value, literal := spec.Values[0].(*ast.BasicLit)
			if named && literal && value.Kind == token.STRING {
				text, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				all[of.Name] = append(all[of.Name], text)
			}
			return true
		})
	}
	for _, values := range all {
		slices.Sort(values)
	}
	return all
}
