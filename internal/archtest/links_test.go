package archtest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLinks: what a page links to in the repository is there, headings included.
func TestLinks(t *testing.T) {
	t.Parallel()
	count := 0
	for _, page := range pages(t) {
		for _, target := range links(read(t, page)) {
			count++
			if wrong := broken(t, page, target); wrong != "" {
				t.Errorf("%s links to %s: %s", page, target, wrong)
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d links were found", count)
	}
}

// TestBrokenLinksAreFound is the control of the test above.
func TestBrokenLinksAreFound(t *testing.T) {
	t.Parallel()
	page := filepath.Join("..", "..", "README.md")
	for _, target := range links("[a](docs/policy.md) [b](docs/no-such-page.md), [c](docs/policy.md#no-such-heading)\n```\n[d](e)\n```\n[f](https://a.example/)") {
		if wrong := broken(t, page, target); (wrong == "") != (target == "docs/policy.md") {
			t.Errorf("%s: %q", target, wrong)
		}
	}
}

// pages are the texts of the repository that people read.
func pages(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("..", "..", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join("..", "..", "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// links are those to the repository itself, outside of code.
func links(text string) []string {
	text = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`").ReplaceAllString(text, "")
	var targets []string
	for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(m[1], "://") {
			targets = append(targets, m[1])
		}
	}
	return targets
}

// broken says what is wrong with a link, "" if nothing is.
func broken(t *testing.T, page, target string) string {
	t.Helper()
	path, heading, _ := strings.Cut(target, "#")
	file := page
	if path != "" {
		file = filepath.Join(filepath.Dir(page), path)
	}
	if _, err := os.Stat(file); err != nil {
		return "there is no such file"
	}
	if heading == "" {
		return ""
	}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(read(t, file), -1) {
		if anchor(m[1]) == heading {
			return ""
		}
	}
	return "there is no such heading"
}

// anchor is what a heading is linked to by.
func anchor(heading string) string {
	plain := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(plain, " ", "-")
}
