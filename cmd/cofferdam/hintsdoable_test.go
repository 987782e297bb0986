package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// hint is what follows our name in a sentence for people, where it is a command: words, and then flags.
var hint = regexp.MustCompile(`^((?: [a-z][a-z0-9-]*)+)((?: (?:--?[a-z][a-z0-9-]*|[A-Z@%'][A-Za-z@:%'.]*))*)`)

// page is a document of ours in a sentence, with the heading.
var page = regexp.MustCompile(`\bdocs/([a-z0-9/-]+\.md)(#[a-z0-9-]+)?`)

// TestHintsAreDoable: each sentence of the program that names a command of ours, a flag of it or a page of our
// documents names one that there is. A refusal that says what to do has nothing else to say it by.
func TestHintsAreDoable(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	hints, pages := 0, 0
	for _, dir := range []string{"internal", "cmd", "client", "api"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, text := range textsOf(t, path) {
				for _, after := range strings.Split(text, "cofferdam")[1:] {
					found := hint.FindStringSubmatch(after)
					if found == nil {
						continue
					}
					if says := notDoable(strings.Fields(found[1]), strings.Fields(found[2])); says != "" {
						t.Errorf("%s: %q: %s", path, "cofferdam"+found[0], says)
					}
					hints++
				}
				for _, found := range page.FindAllStringSubmatch(text, -1) {
					if says := noPage(root, found[1], found[2]); says != "" {
						t.Errorf("%s: %q: %s", path, found[0], says)
					}
					pages++
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if hints < 100 || pages < 3 {
		t.Errorf("INCONCLUSIVE: %d hints and %d pages are found", hints, pages)
	}
}

// textsOf are a file's string literals; those that are added up are one.
func textsOf(t *testing.T, path string) (texts []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}

// others are words that follow our name where it is none of the host's commands: the guest's own command and
// cobra's, and verbs and nouns of sentences.
func others() []string {
	return []string{"request", "help", "as", "can", "withholds", "answers", "lent", "advisories", "owner", "disk"}
}

// notDoable says what is wrong with a hint; "": nothing.
func notDoable(words, flags []string) string {
	cmd := newRoot()
	for i, word := range words {
		next := subcommand(cmd, word)
		if next == nil {
			switch {
			case i == 0 && slices.Contains(others(), word):
				return ""
			case i == 0:
				return "there is no command " + word
			}
			break
		}
		cmd = next
	}
	for _, flag := range flags {
		name, long := strings.CutPrefix(flag, "--")
		if long && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil && name != "help" {
			return cmd.CommandPath() + " has no flag " + flag
		}
	}
	return ""
}

func subcommand(cmd *cobra.Command, word string) *cobra.Command {
	for _, sub := range cmd.Commands() {
		if sub.Name() == word || sub.HasAlias(word) {
			return sub
		}
	}
	return nil
}

// noPage says that there is no such page, or no such heading on it.
func noPage(root, name, anchor string) string {
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		return err.Error()
	}
	if anchor == "" {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		heading := strings.TrimSpace(strings.TrimLeft(line, "#"))
		if strings.HasPrefix(line, "#") && "#"+strings.ReplaceAll(strings.ToLower(heading), " ", "-") == anchor {
			return ""
		}
	}
	return "the page has no heading " + anchor
}
