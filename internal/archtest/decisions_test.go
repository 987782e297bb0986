package archtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDecisionsAreNumbered: the records in docs/decisions are numbered without a gap,
// each has its number and a date, and the index has a line for each.
func TestDecisionsAreNumbered(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "docs", "decisions")
	paths, err := filepath.Glob(filepath.Join(dir, "0*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no records: %v", err)
	}
	index, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range paths {
		name := filepath.Base(path)
		if want := fmt.Sprintf("%04d-", i+1); !strings.HasPrefix(name, want) {
			t.Fatalf("docs/decisions/%s: the number after %04d is %s", name, i, want)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		head := regexp.MustCompile(fmt.Sprintf(`^# %d\. (.+)\n\nDate: (20\d\d-\d\d-\d\d)\n\n`, i+1)).FindSubmatch(text)
		if head == nil {
			t.Errorf("docs/decisions/%s does not begin with \"# %d. TITLE\", an empty line and \"Date: YYYY-MM-DD\"", name, i+1)
			continue
		}
		if row := fmt.Sprintf("| %d | [%s](%s) | %s |", i+1, head[1], name, head[2]); !strings.Contains(string(index), row) {
			t.Errorf("docs/decisions/README.md lacks the line\n%s", row)
		}
	}
}
