package archtest_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// wings lists the house from the bottom to the top: a package imports packages of its own wing
// and of those below it. The compiler keeps cycles out of a wing.
func wings() [][]string {
	return [][]string{
		{"internal/kit", "api", "client"}, // tools that know nothing of the domain; the wire's types and their client
		{"internal/decide"},               // judges, and keeps the record of what was decided
		{"internal/packages"},             // speaks to registries
		{"internal/sandboxes"},            // runs code
		{"internal/network"},              // carries connections to hosts other than registries
		{"internal/serve"},                // puts the parts together and shows them to the world
		{"cmd", "internal/archtest", "test", "bench", "packaging"},
	}
}

func wingOf(pkg string) (int, bool) {
	for i, folders := range wings() {
		for _, folder := range folders {
			if below(pkg, folder) {
				return i, true
			}
		}
	}
	return 0, false
}

func TestImportsPointDown(t *testing.T) {
	seen := make([]bool, len(wings()))
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		from, known := wingOf(f.pkg)
		if !known {
			t.Errorf("%s: the folder %s is in no wing; move it to the wing of internal that it belongs to", f.path, f.pkg)
			continue
		}
		seen[from] = true
		for _, imp := range f.imports {
			rel, ours := strings.CutPrefix(imp, module+"/")
			if !ours {
				continue
			}
			if to, known := wingOf(rel); !known || to > from {
				t.Errorf("%s is in %s and imports %s: imports point down", f.path, wings()[from][0], rel)
			}
		}
	}
	for i, some := range seen {
		if !some {
			t.Errorf("%s has no files; the test looks for the wrong names", wings()[i][0])
		}
	}
}

// TestInternalHasSixDoors: whoever opens internal sees the wings, and this test.
func TestInternalHasSixDoors(t *testing.T) {
	doors := map[string]bool{}
	for _, f := range tree(t) {
		if rest, ok := strings.CutPrefix(f.pkg, "internal/"); ok {
			door, _, _ := strings.Cut(rest, "/")
			doors[door] = true
			if rest == door && door != "archtest" {
				t.Errorf("%s: a wing has packages and is none", f.path)
			}
		}
	}
	if len(doors) != 7 {
		t.Errorf("internal has %d folders, want six wings and archtest: %v", len(doors), doors)
	}
}

// strangers are pairs that must not know each other, whatever their wings.
func TestStrangers(t *testing.T) {
	strangers := []struct{ from, to, why string }{
		{"internal/packages/gateway", "internal/network/egress", "streams and registries meet in the composition root"},
		{"internal/network/egress", "internal/packages/gateway", "streams and registries meet in the composition root"},
		{"internal/packages/gateway", "internal/sandboxes/sandbox", "the gateway knows a sandbox by its id only"},
		{"internal/sandboxes/sandbox", "internal/packages/gateway", "the gateway is another process"},
		{"internal/packages/ecosystem", "internal/packages/upstream", "a protocol never fetches"},
		{"internal/packages/ecosystem", "internal/packages/cache", "a protocol never stores"},
		{"internal/packages/gateway", "internal/packages/ecosystem/pypi", "the gateway knows ecosystems by their contract"},
		{"internal/packages/gateway", "internal/packages/ecosystem/npm", "the gateway knows ecosystems by their contract"},
		{"internal/packages/gateway", "internal/packages/ecosystem/golang", "the gateway knows ecosystems by their contract"},
		{"internal/decide/admission", "internal/packages/ecosystem", "decisions know no protocol"},
		{"internal/sandboxes/sandbox", "internal/sandboxes/engine/gvisor", "neutral code knows engines by their contract"},
		{"internal/sandboxes/keeper", "internal/sandboxes/engine", "payloads are opaque to the keeper"},
		{"cmd/cofferdam-guest", "internal/decide/policy", "the guest agent knows nothing of policy"},
		{"client", "internal", "the public client uses the standard library and api only"},
		{"api", "internal", "the wire's types use the standard library only"},
	}
	files := tree(t)
	for _, s := range strangers {
		for _, folder := range []string{s.from, s.to} {
			if !slices.ContainsFunc(files, func(f file) bool { return !f.test && below(f.pkg, folder) }) {
				t.Errorf("%s has no files; the test looks for the wrong name", folder)
			}
		}
		for _, f := range files {
			if f.test || !below(f.pkg, s.from) {
				continue
			}
			for _, imp := range f.imports {
				if rel, ours := strings.CutPrefix(imp, module+"/"); ours && below(rel, s.to) {
					t.Errorf("%s imports %s: %s", f.path, rel, s.why)
				}
			}
		}
	}
}

// wire are the packages that know the types of /v1, and why each does. All others have
// types of their own, which the wire's are made of at the edge.
func wire() map[string]string {
	return map[string]string{
		"api":                      "it is the types",
		"client":                   "it speaks /v1",
		"cmd/cofferdam":            "it speaks /v1 through the client",
		"bench":                    "it measures through the client",
		"test":                     "it tests through the client",
		"internal/serve/httpapi":   "it answers: types are converted here",
		"internal/serve/daemon":    "the composition root says which version answers",
		"internal/serve/selftest":  "it attacks from inside of a sandbox that it makes through the client",
		"internal/decide/advisory": "what an import, a check and a review found is told as it is made, and read by nobody inside",
	}
}

// TestTheWiresTypesStayAtTheEdge: a type of api that is used deep inside would make every
// change of it a change of the public API.
func TestTheWiresTypesStayAtTheEdge(t *testing.T) {
	uses := map[string]bool{}
	for _, f := range tree(t) {
		for _, imp := range f.imports {
			if imp != module+"/api" {
				continue
			}
			home := ""
			for pkg := range wire() {
				if below(f.pkg, pkg) {
					home = pkg
				}
			}
			if uses[home] = true; home == "" {
				t.Errorf("%s imports api: give it a type of its own, and convert that in internal/serve/httpapi", f.path)
			}
		}
	}
	for pkg, why := range wire() {
		if !uses[pkg] && pkg != "api" {
			t.Errorf("wire lists %s (%s), which does not import api", pkg, why)
		}
	}
}

// TestWhoKnowsTheDoorAlone: nothing that the gateway, the egress router or the telemetry
// imports, at whatever remove, decides, records or asks a person.
func TestWhoKnowsTheDoorAlone(t *testing.T) {
	imports := map[string][]string{}
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		for _, imp := range f.imports {
			if rel, ours := strings.CutPrefix(imp, module+"/"); ours {
				imports[f.pkg] = append(imports[f.pkg], rel)
			}
		}
	}
	for _, from := range []string{"internal/packages/gateway", "internal/network/egress", "internal/serve/telemetry"} {
		through := map[string]string{from: ""}
		for todo := []string{from}; len(todo) > 0; todo = todo[1:] {
			for _, next := range imports[todo[0]] {
				if _, seen := through[next]; !seen {
					through[next] = todo[0]
					todo = append(todo, next)
				}
			}
		}
		if _, ok := through["internal/decide/door"]; !ok {
			t.Errorf("%s does not import the door; the test looks for the wrong names", from)
		}
		for _, stranger := range []string{"internal/decide/admission", "internal/decide/approval", "internal/decide/advisory", "internal/decide/audit"} {
			if by, ok := through[stranger]; ok {
				t.Errorf("%s comes to %s, by way of %s: of these it knows the door alone", from, stranger, by)
			}
		}
	}
}

// TestOnlyDeliverySends: below the gateway one package alone sends content, and it has
// none but what the door judged. Others send their own words, and rendered pages.
func TestOnlyDeliverySends(t *testing.T) {
	const home = "internal/packages/gateway/delivery"
	sends := map[string]bool{}
	for _, f := range tree(t) {
		if f.test || !below(f.pkg, "internal/packages/gateway") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !strings.HasPrefix(sel.Sel.Name, "Serve") {
				return true
			}
			if from, ok := sel.X.(*ast.Ident); ok && from.Name == "http" && sel.Sel.Name != "Server" {
				sends[f.pkg] = true
				if f.pkg != home {
					t.Errorf("%s calls http.%s: what is sent of a release is delivery's, which has it judged", f.path, sel.Sel.Name)
				}
			}
			return true
		})
	}
	if !sends[home] {
		t.Error("the delivery sends nothing; the test looks for the wrong names")
	}
}

// TestVersionsHaveOneParser: the languages of versions and ranges are known to
// pkgref alone; all others use its Version and Range.
func TestVersionsHaveOneParser(t *testing.T) {
	seen := false
	for _, f := range tree(t) {
		home := below(f.pkg, "internal/decide/pkgref")
		for _, imp := range f.imports {
			rel, ours := strings.CutPrefix(imp, module+"/internal/decide/pkgref/")
			seen = seen || ours && home
			if ours && !home {
				t.Errorf("%s imports pkgref's %s: use pkgref.Version and pkgref.Range", f.path, rel)
			}
		}
	}
	if !seen {
		t.Error("pkgref imports no parser; the test looks for the wrong names")
	}
}

// TestOnlyFilelockLocks: a lock of a file is given back by one type, which knows that a
// program that is being started has a copy of it.
func TestOnlyFilelockLocks(t *testing.T) {
	const home = "internal/kit/filelock"
	seen := false
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Flock" {
				seen = seen || f.pkg == home
				if f.pkg != home {
					t.Errorf("%s locks a file itself: use internal/kit/filelock", f.path)
				}
			}
			return true
		})
	}
	if !seen {
		t.Error("internal/kit/filelock locks nothing; the test looks for the wrong names")
	}
}

// TestOnlyTelemetryMeasures: no other package knows how metrics and traces are
// made, so that none has to.
func TestOnlyTelemetryMeasures(t *testing.T) {
	seen := false
	for _, f := range tree(t) {
		home := below(f.pkg, "internal/serve/telemetry")
		for _, imp := range f.imports {
			if !strings.HasPrefix(imp, "github.com/prometheus/") && !strings.HasPrefix(imp, "go.opentelemetry.io/") {
				continue
			}
			seen = seen || home
			if !home {
				t.Errorf("%s imports %s: report to internal/serve/telemetry through an interface of your own", f.path, imp)
			}
		}
	}
	if !seen {
		t.Error("internal/serve/telemetry imports neither; the test looks for the wrong names")
	}
}

// TestPurity: what decides and what speaks a protocol does no input or output.
func TestPurity(t *testing.T) {
	impure := map[string]bool{"os": true, "net": true, "net/http": true, "database/sql": true, "log": true, "log/slog": true, "os/exec": true, "syscall": true}
	for _, f := range tree(t) {
		if f.test || below(f.pkg, "internal/packages/ecosystem/ecosystemtest") {
			continue
		}
		if !below(f.pkg, "internal/decide/policy") && !below(f.pkg, "internal/decide/pkgref") && !below(f.pkg, "internal/packages/ecosystem") && !below(f.pkg, "internal/network/egress/tlshello") && f.pkg != "internal/decide/gitwire" && f.pkg != "internal/decide/tool" {
			continue
		}
		for _, imp := range f.imports {
			if impure[imp] {
				t.Errorf("%s imports %s: the package is pure", f.path, imp)
			}
		}
	}
}
