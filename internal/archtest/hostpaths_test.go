package archtest_test

import (
	"go/ast"
	"strings"
	"testing"
)

// byName are calls that resolve a path by its name, each of these packages.
func byName() map[string][]string {
	return map[string][]string{
		"os":       {"Open", "OpenFile", "OpenRoot", "ReadFile", "ReadDir", "Stat", "Lstat", "DirFS", "Readlink"},
		"unix":     {"Open", "Openat", "Stat", "Lstat", "Statx", "Mount", "OpenTree", "Access"},
		"filepath": {"EvalSymlinks", "Walk", "WalkDir", "Glob"},
	}
}

// TestSourcesAreOpenedByHostpath: a mount's source is what somebody asked for, and lies where
// others may write. Code that passes its name to a call that resolves it resolves it once more.
func TestSourcesAreOpenedByHostpath(t *testing.T) {
	sources := 0
	for _, f := range tree(t) {
		if f.test || !below(f.pkg, "internal/sandboxes/engine") && !below(f.pkg, "internal/sandboxes/sandbox") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := calledByName(call)
			for _, arg := range call.Args {
				if !namesSource(arg) {
					continue
				}
				if sources++; name != "" {
					t.Errorf("%s calls %s with a mount's source: open it by internal/kit/hostpath, or by engine.Mount.Open", f.set.Position(call.Pos()), name)
				}
			}
			return true
		})
	}
	if sources == 0 {
		t.Error("no call has a source: the rule looks for the wrong name")
	}
}

// calledByName is a call's name, if it is one of byName.
func calledByName(call *ast.CallExpr) string { return calledOf(call, byName()) }

// calledOf is a call's name, if it is one of these functions of these packages.
func calledOf(call *ast.CallExpr, functions map[string][]string) string {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := of.X.(*ast.Ident)
	if !ok {
		return ""
	}
	for _, name := range functions[pkg.Name] {
		if of.Sel.Name == name {
			return pkg.Name + "." + name
		}
	}
	return ""
}

// namesSource tells whether an expression has a field Source in it.
func namesSource(arg ast.Expr) bool {
	found := false
	ast.Inspect(arg, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && strings.EqualFold(s.Sel.Name, "source") {
			found = true
		}
		return !found
	})
	return found
}

// opensByName are calls that resolve a path, or write at one, in the command line's package.
func opensByName() map[string][]string {
	all := byName()
	all["os"] = append(all["os"], "Create", "WriteFile", "Rename", "Mkdir", "MkdirAll", "Symlink", "Link", "Remove", "RemoveAll", "Truncate", "Chmod", "Chown")
	all["atomicfile"] = []string{"Replace", "ReplaceVolatile", "ReplaceLike", "Create"}
	return all
}

// openedElsewhere are the files of the command line that open what no agent could write to, or
// take nothing from where a path leads, each with the reason.
func openedElsewhere() map[string]string {
	return map[string]string{
		"apply.go os.ReadDir":              "the installation's own directory of copies",
		"applyleads.go os.Lstat":           "whether there is something that is not looked through; nothing is taken from it",
		"auditcopy.go os.RemoveAll":        "a temporary directory of its own",
		"auditcopy.go os.ReadFile":         "a kept log checkpoint, which is verified, and may come through a pipe",
		"auditfiles.go os.Stat":            "whether a log's directory is there; its records are verified",
		"auditprove.go os.Open":            "a proof, which is verified, and may come through a pipe",
		"auditverify.go os.ReadFile":       "a kept log checkpoint, which is verified, and may come through a pipe",
		"copylook.go os.Lstat":             "whether there is something to point out",
		"daemon.go os.Open":                "the daemon's log, in the runtime directory",
		"env.go os.ReadFile":               "in the state directory",
		"env.go atomicfile.Replace":        "in the state directory",
		"hint.go os.Lstat":                 "whether there is something to point out",
		"hint.go os.Stat":                  "whether there is something to point out",
		"missing.go os.Open":               "in the state directory",
		"missing.go os.OpenFile":           "in the state directory",
		"request.go filepath.EvalSymlinks": "names alone; what is mounted is opened by the daemon",
		"request.go os.Stat":               "whether a mount's source is there; what is mounted is opened by the daemon",
		"servecheck.go os.Stat":            "files of the configuration, and the state directory",
		"templatehint.go os.Stat":          "the host's own programs",
	}
}

// TestCommandLineOpensOnce: what a person names may lie where an agent could leave a link. So
// the command line opens and writes it by the functions of hostfile.go, which go by
// internal/kit/hostpath, and by no call that resolves a name.
func TestCommandLineOpensOnce(t *testing.T) {
	calls := opensByName()
	used := map[string]bool{}
	inside := 0
	for _, f := range tree(t) {
		if f.test || f.pkg != "cmd/cofferdam" {
			continue
		}
		file := f.path[strings.LastIndexByte(f.path, '/')+1:]
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := calledOf(call, calls)
			switch key := file + " " + name; {
			case calledOf(call, map[string][]string{"hostpath": {"Resolve", "Find", "MakeDirs", "Open"}}) != "":
				inside++
			case name == "":
			case openedElsewhere()[key] != "":
				used[key] = true
			default:
				t.Errorf("%s calls %s: open what a person names by openNamed, findNamed, rootNamed or readDocument, or say in openedElsewhere why no agent can have put a link there", f.set.Position(call.Pos()), name)
			}
			return true
		})
	}
	if inside < 5 {
		t.Errorf("only %d calls of hostpath: the rule looks for the wrong name", inside)
	}
	for key := range openedElsewhere() {
		if !used[key] {
			t.Errorf("nobody calls %s any more; take it out of openedElsewhere", key)
		}
	}
}

// followed are the packages that follow every link, whoever made it, each with the reason. Of the command line, which
// is given most of the names, they are files.
func followed() map[string]string {
	return map[string]string{
		"cmd/cofferdam/applyleads.go":          "what the person's settings lead to is brought over by name alone: to follow less would name less",
		"cmd/cofferdam/applyoutside.go":        "the same",
		"cmd/cofferdam/projectfiles.go":        "whether something is there, which is not read: to follow less would take it for absent",
		"internal/sandboxes/engine":            "places of Cofferdam's own; a source that somebody asked for has an identity",
		"internal/sandboxes/engine/microvm":    "places of Cofferdam's own",
		"internal/sandboxes/engine/mounts":     "places of Cofferdam's own",
		"internal/sandboxes/engine/runc":       "places of Cofferdam's own",
		"internal/kit/hostpath/executable":     "which files decide what a program does: to follow less would look at fewer",
		"internal/serve/project":               "settings, whose links are a part of what a person allows",
		"internal/sandboxes/sandbox/agenthome": "places of Cofferdam's own",
	}
}

// TestWhoFollowsEveryLink: a link that another user's agent may have made is followed by nobody who opens what a person
// names. So Follow has callers that are listed, each with a reason.
func TestWhoFollowsEveryLink(t *testing.T) {
	used := map[string]bool{}
	for _, f := range tree(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || calledOf(call, map[string][]string{"hostpath": {"Follow"}}) == "" {
				return true
			}
			at := f.pkg
			if at == "cmd/cofferdam" {
				at = f.path
			}
			if used[at] = true; followed()[at] == "" {
				t.Errorf("%s calls hostpath.Follow: call hostpath.Resolve, or say in followed why every link may be followed", f.set.Position(call.Pos()))
			}
			return true
		})
	}
	for at := range followed() {
		if !used[at] {
			t.Errorf("%s follows no link by hostpath.Follow any more", at)
		}
	}
}
