package follow

import (
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun"
)

// TestOtherSettingsThatRunByThemselves: the same program by another spelling, or another program that the list has by
// a file of its own, in a file that has much else.
func TestOtherSettingsThatRunByThemselves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, name, before, after string }{
		// The controls: these are found.
		{"control", "Cargo.toml", "[package]\nname = 'x'\n", "[package]\nname = 'x'\n[lib]\nproc-macro = true\n"},
		{"control", "package.json", `{"name": "x"}`, `{"name": "x", "husky": {"hooks": {"pre-commit": "./x"}}}`},
		{"control", "pyproject.toml", "", "[tool.pylint.main]\ninit-hook = 'import os'\n"},
		// cargo takes crate-type = ["proc-macro"] for proc-macro = true, with a warning; editors run what it makes.
		{"a macro by its crate type", "Cargo.toml", "[package]\nname = 'x'\n", "[package]\nname = 'x'\n[lib]\ncrate-type = [\"proc-macro\"]\n"},
		{"a macro by its crate type", "Cargo.toml", "[package]\nname = 'x'\n", "[package]\nname = 'x'\n[lib]\ncrate_type = [\"proc-macro\"]\n"},
		// Each of these has a file of its own that the list has as Started.
		{"git's hooks by yorkie", "package.json", `{"name": "x"}`, `{"name": "x", "gitHooks": {"pre-commit": "node x.js"}}`},
		{"nano-staged", "package.json", `{"name": "x"}`, `{"name": "x", "nano-staged": {"*": "node x.js"}}`},
		{"jest.config.*", "package.json", `{"name": "x"}`, `{"name": "x", "jest": {"globalSetup": "./x.js"}}`},
		{"postcss.config.*", "package.json", `{"name": "x"}`, `{"name": "x", "postcss": {"plugins": {"./x.js": {}}}}`},
		{".remarkrc", "package.json", `{"name": "x"}`, `{"name": "x", "remarkConfig": {"plugins": ["./x.js"]}}`},
		{".xo-config", "package.json", `{"name": "x"}`, `{"name": "x", "xo": {"plugins": ["./x.js"]}}`},
		{"cspell.json", "package.json", `{"name": "x"}`, `{"name": "x", "cspell": {"import": ["./x.js"]}}`},
		{".sqlfluff", "pyproject.toml", "", "[tool.sqlfluff.templater.jinja]\nlibrary_path = 'x'\n"},
		{".sqlfluff", "setup.cfg", "", "[sqlfluff:templater:jinja]\nlibrary_path = x\n"},
	} {
		paths := slices.Values([]string{c.name})
		found := Find(autorun.Know(paths), Tree{
			Root: "/r", Paths: paths,
			Texts: func(string) [][]byte { return [][]byte{[]byte(c.before), []byte(c.after)} },
		}, nil)
		files := autorun.Know(paths).With(found...)
		if level := files.Level(c.name); !level.ByName() {
			t.Errorf("%s in %s: brought over without being named (level %d): %q", c.what, c.name, level, c.after)
		}
	}
}
