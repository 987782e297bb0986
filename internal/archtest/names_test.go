package archtest_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	installers "github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// isHome tells where ecosystems and installers may be named: their own folders and files,
// what plays them for tests, and the list by which lockfiles are told.
func isHome(f file) bool {
	for _, parent := range []string{"internal/packages/ecosystem/", "internal/packages/installer/", "internal/decide/inventory/"} {
		if strings.HasPrefix(f.pkg, parent) {
			return true
		}
	}
	forTests := f.test || strings.HasSuffix(f.pkg, "test") && f.pkg != "internal/serve/selftest"
	return forTests || f.pkg == "internal/decide/pkgref" || f.path == filepath.FromSlash("internal/decide/lockfile/parse.go")
}

// constants are pkgref's words for ecosystems.
func constants(t *testing.T, files []file) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, f := range files {
		if f.pkg != "internal/decide/pkgref" || f.test {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "Ecosystem" {
				for _, name := range spec.Names {
					names[name.Name] = true
				}
			}
			return true
		})
	}
	if len(names) != len(pkgref.Ecosystems()) {
		t.Fatalf("pkgref has the constants %v for %q; the pattern is broken", names, pkgref.Ecosystems())
	}
	return names
}

// TestEcosystemsStayHome: nobody but an ecosystem's own folders and files names it. Others
// ask for its traits, or for what its folder can do.
func TestEcosystemsStayHome(t *testing.T) {
	files := tree(t)
	names, atHome := constants(t, files), 0
	for _, f := range files {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !names[sel.Sel.Name] {
				return true
			}
			if from, ok := sel.X.(*ast.Ident); !ok || from.Name != "pkgref" {
				return true
			}
			if isHome(f) {
				atHome++
			} else {
				t.Errorf("%s names pkgref.%s; ask for a trait of the ecosystem, or for an ability of what package all lists", f.path, sel.Sel.Name)
			}
			return true
		})
	}
	if atHome < 50 {
		t.Errorf("only %d names were found; the pattern is broken", atHome)
	}
}

// ofOthers are the files outside of the homes in which a word is that of an ecosystem, a
// client or a file of one, and why. None of them has to know of a new one.
func ofOthers() map[string]string {
	return map[string]string{
		"internal/decide/admission/command.go":       "interpreters, which hand code over by an option",
		"internal/decide/autorun/names.go":           "what tools run of a directory, be it an ecosystem's or not",
		"internal/decide/autorun/follow/settings.go": "files in which checkers of code keep settings beside others",
		"internal/decide/advisory/lookalike.go":      "words that are in many packages' names",
		"internal/packages/gateway/downloads.go":     "what clients fetch beside packages, by the last part of an address",
		"internal/sandboxes/interpreter/language.go": "the languages of cells",
		"internal/decide/policy/pycode/pycode.go":    "the language that it reads",
		"internal/decide/policy/pycode/scan.go":      "what lines of a cell are not Python",
		"internal/sandboxes/template/wheels.go":      "where the template's packages lie",
		"internal/sandboxes/guest/environment.go":    "the same, as the variables of version managers have it",
		"internal/serve/httpapi/mcp/code.go":         "languages of code that is handed over as text, and their interpreters",
		"internal/serve/selftest/evidence.go":        "the self-test installs with a real client",
		"internal/serve/selftest/installation.go":    "the self-test has a registry of its own",
		"internal/serve/selftest/story.go":           "what the self-test expects on record",
		"internal/sandboxes/template/debian.go":      "what the template's own tools need",
		"internal/sandboxes/template/golibrary.go":   "the template has the compiled library of one of its tools",
		"internal/sandboxes/template/layout.go":      "what the template's packages bring",
		"internal/sandboxes/template/pins.go":        "the template's tools, pinned",
		"internal/sandboxes/template/skeleton.go":    "the host template shows the host's interpreter",
	}
}

// words are the names of ecosystems, of clients, and of the files that these read.
func words(t *testing.T) map[string]bool {
	t.Helper()
	words := map[string]bool{}
	for _, e := range pkgref.Ecosystems() {
		words[string(e)] = true
		for _, l := range e.Lockfiles() {
			words[l.Name] = true
		}
	}
	for _, i := range installers.Installers() {
		words[i.Name()] = true
		if reader, can := i.(installer.ManifestReader); can {
			for _, m := range reader.Manifests() {
				words[m.Name] = true
			}
		}
	}
	if len(words) < 15 {
		t.Fatalf("only %v are known", words)
	}
	return words
}

// ofTheProduct: what measures, tests and packages it may name what it likes.
func ofTheProduct(f file) bool {
	for _, dir := range []string{"api", "client", "cmd", "internal"} {
		if below(f.pkg, dir) {
			return true
		}
	}
	return false
}

// TestNobodySwitchesOnTheirNames: no text elsewhere is the name of an ecosystem, a client
// or one of their files, so that nothing is decided by it.
func TestNobodySwitchesOnTheirNames(t *testing.T) {
	known, excused, used := words(t), ofOthers(), map[string]bool{}
	for _, f := range tree(t) {
		if isHome(f) || !ofTheProduct(f) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if _, isImport := n.(*ast.ImportSpec); isImport {
				return false
			}
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			word, err := strconv.Unquote(lit.Value)
			if err != nil || !known[word] {
				return true
			}
			path := filepath.ToSlash(f.path)
			used[path] = true
			if excused[path] == "" {
				t.Errorf("%s has the word %q; whoever adds an ecosystem or a client would have to find it: ask for a trait, or for an ability of what package all lists", path, word)
			}
			return true
		})
	}
	for path, why := range excused {
		if !used[path] {
			t.Errorf("%s has no such word any more (%s); take it out of the list", path, why)
		}
	}
}
