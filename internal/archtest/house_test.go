package archtest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPackageComments: every package says once what it is for.
func TestPackageComments(t *testing.T) {
	comments := map[string]int{}
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		if f.syntax.Doc != nil {
			comments[f.pkg]++
		} else if _, seen := comments[f.pkg]; !seen {
			comments[f.pkg] = 0
		}
	}
	for pkg, n := range comments {
		if n != 1 {
			t.Errorf("%s has %d package comments; it needs exactly one", pkg, n)
		}
	}
}

// TestNoDrawers: a package is a domain noun.
func TestNoDrawers(t *testing.T) {
	drawers := regexp.MustCompile(`(^|/)(util|utils|common|shared|helpers|helper|types|misc|base)(/|$)`)
	for _, f := range tree(t) {
		if drawers.MatchString(f.pkg) {
			t.Errorf("%s: %s names a drawer, not a thing", f.path, f.pkg)
		}
	}
}

// TestEngineNamesStayHome: neutral code names no technology. Command-line help
// and the composition root may.
func TestEngineNamesStayHome(t *testing.T) {
	tech := regexp.MustCompile(`(?i)\b(runsc|gvisor|firecracker|docker|kubernetes|qemu)\b`)
	neutral := []string{"internal/sandboxes/sandbox", "internal/decide/admission", "internal/packages/gateway", "internal/network/egress", "internal/kit/channel", "internal/sandboxes/keeper", "internal/decide/audit", "internal/decide/pkgref", "internal/kit/fault", "client"}
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		for _, dir := range neutral {
			if !below(f.pkg, dir) {
				continue
			}
			data, err := os.ReadFile(filepath.Join("..", "..", f.path))
			if err != nil {
				t.Fatal(err)
			}
			if m := tech.Find(data); m != nil {
				t.Errorf("%s names %q; only internal/sandboxes/engine/%s and the composition root may", f.path, m, strings.ToLower(string(m)))
			}
		}
	}
}

// TestChildrenStayHome: of ecosystems, installers and engines only their lists know them,
// and children of one parent may share. engine/image is the form of what engines keep, and
// engine/embedded carries their program: neither is an engine.
func TestChildrenStayHome(t *testing.T) {
	found := 0
	for _, f := range tree(t) {
		for _, parent := range []string{"internal/packages/ecosystem", "internal/packages/installer", "internal/decide/inventory", "internal/sandboxes/engine"} {
			for _, imported := range f.imports {
				child, in := strings.CutPrefix(imported, module+"/"+parent+"/")
				if !in || below(child, "all") || child == "image" || child == "embedded" || strings.HasSuffix(child, "test") || f.test {
					continue
				}
				found++
				if !below(f.pkg, parent) {
					t.Errorf("%s imports %s; only %s/all and its neighbours may", f.path, imported, parent)
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d imports were found; the pattern is broken", found)
	}
}

// TestDependenciesAreExplained: each direct dependency has its line in
// docs/dependencies.md.
func TestDependenciesAreExplained(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	direct := regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(mod), -1)
	if len(direct) == 0 {
		t.Fatal("go.mod lists no direct dependency; the pattern is broken")
	}
	for _, d := range direct {
		if !strings.Contains(string(doc), "`"+d[1]+"`") {
			t.Errorf("docs/dependencies.md does not say what %s is for", d[1])
		}
	}
}

// TestMap: ARCHITECTURE.md has every wing in order, and no file that it or CONTRIBUTING.md names is missing.
func TestMap(t *testing.T) {
	root := filepath.Join("..", "..")
	doc := read(t, filepath.Join(root, "ARCHITECTURE.md"))
	howTo := read(t, filepath.Join(root, "CONTRIBUTING.md"))
	_, rows, _ := strings.Cut(doc, "\n## Where things are\n")
	for _, wing := range wings() {
		row := regexp.MustCompile("\n[|] `" + wing[0] + "(?:/cofferdam)?` [|]").FindStringIndex(rows)
		if row == nil {
			t.Fatalf("ARCHITECTURE.md's table of wings has no row about %s below those of lower wings", wing[0])
		}
		rows = rows[row[0]+1:]
	}
	named := regexp.MustCompile("`((?:api|client|cmd|internal|runsc|test)(?:/[a-z0-9_.-]+)*)`").FindAllStringSubmatch(doc+howTo, -1)
	if len(named) < 60 {
		t.Errorf("only %d places are named; the pattern is broken", len(named))
	}
	for _, place := range named {
		if _, err := os.Stat(filepath.Join(root, place[1])); err != nil {
			t.Errorf("ARCHITECTURE.md or CONTRIBUTING.md names %s, which is not there", place[1])
		}
	}
}
