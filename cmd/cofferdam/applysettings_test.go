package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
)

// TestSettingsInFilesOfOtherNames: what a checker of code obeys, which editors run while somebody types, stands
// in its own file or in one that has more, in the same words. Where its own file is brought over by name
// alone, the other one with these words is, too. So is what the words name.
func TestSettingsInFilesOfOtherNames(t *testing.T) {
	t.Setenv("COFFERDAM_STATE", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	original, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plain := map[string]string{
		"pyproject.toml": "[project]\nname = 'x'\n", "py2/setup.cfg": "[metadata]\nname = x\n", "web/package.json": "{\"name\": \"x\"}\n", "rust/Cargo.toml": "[package]\nname = \"x\"\n",
		"other/pyproject.toml": "[tool.mypy]\nplugins = ['pydantic.mypy']\n[project]\nname = 'x'\n", "other/package.json": "{\"prettier\": {}, \"devDependencies\": {\"prettier\": \"3.0.0\"}}\n",
		"large/pyproject.toml": "[project]\nname = 'x'\n", "link/pyproject.toml": "[project]\nname = 'x'\n",
		"control1/.pylintrc": "[MAIN]\n", "control2/mypy.ini": "[mypy]\n", "control3/.eslintrc.json": "{}\n", "control4/build.rs": "fn main() {}\n",
	}
	laidFiles(t, original, 0o644, plain)
	w, err := workspace.Make(t.Context(), original, filepath.Join(t.TempDir(), "w"), nil)
	if err != nil {
		t.Fatal(err)
	}
	const run = "import os; os.system('touch /tmp/ran')"
	laidFiles(t, w.Dir(), 0o644, map[string]string{
		"pyproject.toml": "[project]\nname = 'x'\n[tool.pylint.main]\ninit-hook = \"" + run + "\"\n", "control1/.pylintrc": "[MAIN]\ninit-hook=" + run + "\n",
		"py2/setup.cfg": "[metadata]\nname = x\n[mypy]\nplugins = tools/plugin.py\n", "control2/mypy.ini": "[mypy]\nplugins = tools/plugin.py\n", "py2/tools/plugin.py": run + "\n",
		"web/package.json": "{\"name\": \"x\", \"eslintConfig\": {\"parser\": \"./tools/parser.js\"}}\n", "control3/.eslintrc.json": "{\"parser\": \"./tools/parser.js\"}\n", "web/tools/parser.js": "process.exit()\n",
		"rust/Cargo.toml": "[package]\nname = \"x\"\nbuild = \"tools/make.rs\"\n", "rust/tools/make.rs": "fn main() {}\n", "control4/build.rs": "fn main() { }\n",
		"other/pyproject.toml": "[tool.mypy]\nplugins = ['pydantic.mypy']\n[project]\nname = 'y'\n", "other/package.json": "{\"prettier\": {}, \"devDependencies\": {\"prettier\": \"3.1.0\"}}\n", "web/README.md": "x\n",
	})
	laidFiles(t, w.Dir(), 0o644, map[string]string{
		"large/pyproject.toml": "[tool.pylint.main]\ninit-hook = \"" + run + "\"\n#" + strings.Repeat("x", mostNaming), "link/notes.txt": "[tool.pylint.main]\ninit-hook = \"" + run + "\"\n",
	})
	link := filepath.Join(w.Dir(), "link/pyproject.toml")
	if err := errors.Join(os.Remove(link), os.Symlink("notes.txt", link)); err != nil {
		t.Fatal(err)
	}
	changes, err := w.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := autorunOf(t.Context(), w, changes)
	if err != nil {
		t.Fatal(err)
	}
	var brought []string
	for _, c := range leaveUnnamed(w, files, changes, nil) {
		brought = append(brought, c.Path)
	}
	for _, control := range []string{"control1/.pylintrc", "control2/mypy.ini", "control3/.eslintrc.json", "control4/build.rs"} {
		if slices.Contains(brought, control) {
			t.Fatalf("the control %s is brought over unnamed", control)
		}
	}
	for _, name := range []string{"web/README.md", "other/pyproject.toml", "other/package.json"} { // the same settings as before, or none
		if !slices.Contains(brought, name) {
			t.Errorf("%s is not brought over by --all", name)
		}
	}
	for _, name := range []string{"pyproject.toml", "py2/setup.cfg", "py2/tools/plugin.py", "web/package.json", "web/tools/parser.js", "rust/Cargo.toml", "rust/tools/make.rs", "large/pyproject.toml", "link/pyproject.toml"} {
		if slices.Contains(brought, name) {
			t.Errorf("%s is brought over by --all", name)
		}
	}
}
