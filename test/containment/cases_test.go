package containment

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCasesNameTests: every test that docs/security-cases.md names exists, every
// group of TestContainment is a row's there, and every script lies where it says.
func TestCasesNameTests(t *testing.T) {
	doc := readFile(t, repository(t, "docs", "security-cases.md"))
	tests := allTests(t)
	named := regexp.MustCompile("`([a-z0-9]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(doc, -1)
	if len(named) < 50 {
		t.Fatalf("INCONCLUSIVE: only %d tests are named", len(named))
	}
	for _, n := range named {
		if !tests[n[1]+"."+n[2]] {
			t.Errorf("there is no %s.%s", n[1], n[2])
		}
	}
	for _, script := range regexp.MustCompile("`(test/e2e/testdata/[^`]+)`").FindAllStringSubmatch(doc, -1) {
		if _, err := os.Stat(filepath.Join("..", "..", script[1])); err != nil {
			t.Error(err)
		}
	}
	for _, g := range groups() {
		for id := range strings.FieldsSeq(g.name) {
			if strings.HasPrefix(id, "C-") || strings.HasPrefix(id, "G-") {
				if !strings.Contains(doc, "| "+id+" |") {
					t.Errorf("docs/security-cases.md has no row for %s", id)
				}
			}
		}
	}
	for _, id := range regexp.MustCompile(`/([CG]-[A-Z]{2}-\d+)`).FindAllStringSubmatch(doc, -1) {
		found := false
		for _, g := range groups() {
			found = found || strings.Contains(g.name+" ", id[1]+" ")
		}
		if !found {
			t.Errorf("no group of TestContainment is of %s", id[1])
		}
	}
}

// allTests are the tests of the repository as "package.Test".
func allTests(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\(`)
	of := regexp.MustCompile(`(?m)^package ([a-z0-9]+?)(?:_test)?$`)
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() != ".." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if pkg := of.FindSubmatch(text); pkg != nil {
			for _, f := range declared.FindAllSubmatch(text, -1) {
				all[string(pkg[1])+"."+string(f[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
