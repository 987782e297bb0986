package archtest_test

import (
	"go/ast"
	"strings"
	"testing"
)

// walksByName are calls that look through a directory as a whole, or open a directory of it without saying that it is one: a
// directory that an agent may write to is as deep and as wide as the agent made it, and a named pipe in the place of one
// keeps whoever opens it waiting.
func walksByName() map[string][]string {
	return map[string][]string{"fs": {"WalkDir"}, "filepath": {"Walk", "WalkDir"}, "os": {"DirFS", "CopyFS", "OpenRoot"}}
}

// walksElsewhere are the files that walk by another walker than internal/kit/hostpath/treewalk, or open a root by a name,
// each with the reason why no agent has a hand in what is there.
func walksElsewhere() map[string]string {
	return map[string]string{
		"cmd/cofferdam/applyleads.go .FS":                               "one directory of the person's, of which no child is opened",
		"cmd/cofferdam/applyoutside.go .FS":                             "one directory of the person's, of which no child is opened",
		"internal/packages/cache/parts.go filepath.WalkDir":             "the cache's own directory",
		"internal/serve/daemon/load.go os.OpenRoot":                     "a directory of the daemon's own; what is in it is walked with bounds",
		"internal/serve/daemon/reader.go os.OpenRoot":                   "the gateway's own directory; one file is opened by its digest, and its bytes are compared with that",
		"internal/packages/debian/contents.go os.OpenRoot":              "a directory that is being made",
		"internal/sandboxes/engine/docker/ground.go os.OpenRoot":        "a sandbox's root before anything runs in it, in a directory of the engine's",
		"internal/sandboxes/engine/gvisor/skeleton.go filepath.WalkDir": "a template's tree",
		"internal/sandboxes/engine/gvisor/skeleton.go os.OpenRoot":      "a sandbox's root before anything runs in it",
		"internal/sandboxes/engine/layer/file.go os.OpenRoot":           "a layer's directory, in one of the engine's, while nothing runs in it",
		"internal/sandboxes/engine/microvm/kernel.go filepath.WalkDir":  "the host's modules",
		"internal/sandboxes/guest/boot/layout.go os.OpenRoot":           "in the machine itself",
		"internal/sandboxes/guest/identity.go os.OpenRoot":              "in the sandbox itself",
		"internal/kit/hostpath/hostpath.go os.OpenRoot":                 "by the descriptor of what is open",
		"internal/sandboxes/sandbox/copies/blueprint.go .FS":            "the guest agent's own files",
		"internal/sandboxes/sandbox/copies/blueprint.go fs.WalkDir":     "the guest agent's own files",
		"internal/sandboxes/sandbox/copies/blueprint.go os.OpenRoot":    "the guest agent's own files",
		"internal/sandboxes/sandbox/snapshots/room.go filepath.WalkDir": "the store of snapshots, whose files engines write",
		"internal/sandboxes/sandbox/suspend/shelf.go filepath.WalkDir":  "the store of images, whose files engines write",
		"internal/sandboxes/template/digest.go filepath.WalkDir":        "a template's tree",
		"internal/sandboxes/template/golibrary.go filepath.WalkDir":     "the host's Go",
		"internal/sandboxes/template/kept.go filepath.WalkDir":          "a template's tree",
		"internal/sandboxes/template/skeleton.go filepath.WalkDir":      "a template's tree, and the host's own",
		"internal/sandboxes/workspace/apply.go os.OpenRoot":             "a copy's own directory, which whoever is inside can't replace",
		"internal/sandboxes/workspace/changes.go os.OpenRoot":           "a copy's own directory, which whoever is inside can't replace",
		"internal/sandboxes/workspace/copy.go os.OpenRoot":              "a copy's own directory, which whoever is inside can't replace",
	}
}

// TestTreesAreWalkedWithBounds: whoever looks through a directory that an agent may have filled does it by the one walker that has
// bounds, ends with its context, and opens nothing but directories.
func TestTreesAreWalkedWithBounds(t *testing.T) {
	used, walks := map[string]bool{}, 0
	for _, f := range tree(t) {
		if f.test || !below(f.pkg, "internal") && !below(f.pkg, "cmd") && !below(f.pkg, "client") || strings.HasSuffix(f.pkg, "test") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := calledOf(call, walksByName())
			if name == "" {
				name = rootsWalk(call)
			}
			switch key := f.path + " " + name; {
			case calledOf(call, map[string][]string{"treewalk": {"Walk", "WalkRoot", "WalkRootAt"}}) != "":
				walks++
			case name == "":
			case walksElsewhere()[key] != "":
				used[key] = true
			default:
				t.Errorf("%s calls %s: walk by internal/kit/hostpath/treewalk, or say in walksElsewhere why no agent has a hand in what is there", f.set.Position(call.Pos()), name)
			}
			return true
		})
	}
	if walks < 8 {
		t.Errorf("only %d walks by treewalk: the rule looks for the wrong name", walks)
	}
	for key := range walksElsewhere() {
		if !used[key] {
			t.Errorf("nobody calls %s any more; take it out of walksElsewhere", key)
		}
	}
}

// rootsWalk is a method of an os.Root by which others walk, or open a child without saying what kind it is.
func rootsWalk(call *ast.CallExpr) string {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if pkg, ok := of.X.(*ast.Ident); ok && pkg.Name == "os" {
		return ""
	}
	if name := of.Sel.Name; name == "OpenRoot" || name == "FS" && len(call.Args) == 0 {
		return "." + name
	}
	return ""
}
