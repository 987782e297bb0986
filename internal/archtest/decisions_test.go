package archtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestDecisionsAreNumbered: the records in docs/decisions have a number of their own each,
// which is given out when the work on it begins, so that there may be gaps. Each has its
// number and a date, and the index has a line for each.
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
	last := 0
	for _, path := range paths {
		name := filepath.Base(path)
		number, err := strconv.Atoi(name[:min(4, len(name))])
		if err != nil || number <= last || !strings.HasPrefix(name, fmt.Sprintf("%04d-", number)) {
			t.Fatalf("docs/decisions/%s: its number is none, or another record's: the one before is %04d", name, last)
		}
		last = number
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		head := regexp.MustCompile(fmt.Sprintf(`^# %d\. (.+)\n\nDate: (20\d\d-\d\d-\d\d)\n\n`, number)).FindSubmatch(text)
		if head == nil {
			t.Errorf("docs/decisions/%s does not begin with \"# %d. TITLE\", an empty line and \"Date: YYYY-MM-DD\"", name, number)
			continue
		}
		if row := fmt.Sprintf("| %d | [%s](%s) | %s |", number, head[1], name, head[2]); !strings.Contains(string(index), row) {
			t.Errorf("docs/decisions/README.md lacks the line\n%s", row)
		}
	}
}
