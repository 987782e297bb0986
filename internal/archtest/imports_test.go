package archtest_test

import (
	"go/ast"
	"strings"
	"testing"
)

// layers lists who stands above whom: a package may import packages of its own
// or a lower layer. The first matching prefix counts.
func layers() []struct {
	prefix string
	layer  int
} {
	return []struct {
		prefix string
		layer  int
	}{
		{"internal/archtest", 9},
		{"internal/kit/accept", 0},
		{"internal/kit/address", 0},
		{"internal/kit/clock", 0},
		{"internal/kit/safego", 0},
		{"internal/kit/text", 0},
		{"internal/kit/httphead", 0},
		{"internal/kit/httpqueue", 1},
		{"internal/kit/text", 0},
		{"internal/decide/autorun", 0},
		{"internal/kit/loglimit", 0},
		{"internal/kit/lru", 0},
		{"internal/decide/redact", 0},
		{"internal/kit/linediff", 0},
		{"internal/kit/fault", 0},
		{"internal/kit/filelock", 0},
		{"internal/kit/hostpath", 0},
		{"internal/kit/hostload", 0},
		{"internal/kit/faultpoint", 0},
		{"internal/kit/digest", 0},
		{"internal/decide/pkgref", 0},
		{"internal/kit/digest", 0},
		{"internal/kit/process", 0},
		{"internal/decide/dlp", 0},
		{"internal/decide/requestparts", 0},
		{"internal/kit/atomicfile", 0},
		{"internal/kit/privatefile", 0},
		{"internal/sandboxes/workspace", 1},
		{"internal/kit/confine/seccomp", 0},
		{"internal/kit/confine/landlock", 0},
		{"api", 0},
		{"internal/network/dialer", 1},
		{"internal/sandboxes/attest/probe", 1},
		{"internal/sandboxes/attest", 2},
		{"internal/decide/policy", 1},
		{"internal/decide/audit", 1},
		{"internal/decide/gitwire", 0},
		{"internal/kit/pathseg", 0},
		{"internal/decide/secret/exchange", 0},
		{"internal/decide/secret/placeholder", 0},
		{"internal/decide/secret/sigv4", 0},
		{"internal/decide/secret/remote", 1},
		{"internal/decide/secret/*", 2},
		{"internal/decide/secret", 1},
		{"internal/kit/channel", 1},
		{"internal/packages/cache", 1},
		{"internal/sandboxes/cgroup", 1},
		{"internal/network/authority", 2},
		{"internal/sandboxes/keeper", 2},
		{"internal/decide/inventory", 2},
		{"internal/sandboxes/guest", 2},
		{"internal/sandboxes/engine/enginetest", 7},
		{"internal/sandboxes/engine/all", 4},
		{"internal/sandboxes/engine/image", 1},
		{"internal/sandboxes/engine/identity", 1},
		{"internal/sandboxes/engine/hostproc", 2},
		{"internal/sandboxes/engine/layer", 2},
		{"internal/sandboxes/engine/mounts", 2},
		{"internal/sandboxes/engine/*", 3},
		{"internal/sandboxes/engine", 1},
		{"internal/decide/refusal", 1},
		{"internal/sandboxes/sshserver", 1},
		{"internal/kit/fairqueue", 0},
		{"internal/packages/upstream", 1},
		{"internal/sandboxes/template", 3},
		{"internal/packages/debian", 3},
		{"internal/decide/lockfile", 3},
		{"internal/packages/manifest", 3},
		{"internal/packages/installer/all", 5},
		{"internal/packages/installer", 4},
		{"internal/decide/advisory", 3},
		{"internal/decide/approval", 3},
		{"internal/decide/tool", 1},
		{"internal/decide/token", 3},
		{"internal/decide/namedpolicy", 3},
		{"internal/serve/store", 6},
		{"internal/packages/archive", 1},
		{"internal/decide/evidence", 1},
		{"internal/decide/door", 2},
		{"internal/decide/admission", 4},
		{"internal/packages/ecosystem", 4},
		{"internal/packages/releasediff", 5},
		{"internal/sandboxes/sandbox", 5},
		{"internal/packages/plan", 5},
		{"internal/sandboxes/jscall", 5},
		{"internal/sandboxes/interpreter", 5},
		{"internal/sandboxes/templatebuild", 5},
		{"internal/packages/gateway", 5},
		{"internal/network/egress", 5},
		{"internal/serve/config", 6},
		{"internal/serve/httpapi", 6},
		{"internal/serve/doctor", 6},
		{"internal/serve/telemetry", 6},
		{"internal/serve/ui", 6},
		{"internal/serve/backup", 7},
		{"internal/serve/daemon", 7},
		{"internal/serve/project", 7},
		{"internal/serve/selftest", 7},
		{"client", 1},
		{"cmd", 8},
		{"test", 9},
		{"bench", 9},
		{"packaging", 9},
	}
}

func layerOf(pkg string) (int, bool) {
	for _, l := range layers() {
		parent, children := strings.CutSuffix(l.prefix, "/*")
		if below(pkg, parent) && (!children || pkg != parent) {
			return l.layer, true
		}
	}
	return 0, false
}

func TestImportsPointDown(t *testing.T) {
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		from, known := layerOf(f.pkg)
		if !known {
			t.Errorf("%s: the folder %s is in no layer; add it to layers() where it belongs", f.path, f.pkg)
			continue
		}
		for _, imp := range f.imports {
			rel, ours := strings.CutPrefix(imp, module+"/")
			if !ours {
				continue
			}
			to, known := layerOf(rel)
			if !known || to > from {
				t.Errorf("%s (layer %d) imports %s (layer %d): imports point down", f.path, from, rel, to)
			}
		}
	}
}

// strangers are pairs that must not know each other, whatever their layers.
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
		{"client", "internal/kit/channel", "the public client uses the standard library and api only"},
	}
	files := tree(t)
	for _, s := range strangers {
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
