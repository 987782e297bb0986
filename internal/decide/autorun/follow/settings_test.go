package follow

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun"
)

// TestSettingsInOtherSpellings: the readers of a file take each of these for the settings of a program
// that runs by itself, and no other text beside them is.
func TestSettingsInOtherSpellings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		none       bool
	}{
		{name: "pyproject.toml", text: "[tool.pylint.main]\ninit-hook = 'EVIL'\n"},
		{name: "pyproject.toml", text: "tool.pylint.main.init-hook = 'EVIL'\n"},
		{name: "pyproject.toml", text: "tool = {pylint = {main = {init-hook = 'EVIL'}}}\n"},
		{name: "pyproject.toml", text: "[tool]\npylint = {init-hook = 'EVIL'}\n"},
		{name: "pyproject.toml", text: "[tool]\n'pylint'.init-hook = 'EVIL'\n"},
		{name: "pyproject.toml", text: "[ tool . \"pyl\\u0069nt\" ]\ninit-hook = 'EVIL'\n"},
		{name: "pyproject.toml", text: "[tool.pylint.main]\nx = '''\n[other]\n'''\ninit-hook = 'EVIL'\n"},
		{name: "pyproject.toml", text: "[[tool.mypy.overrides]]\nplugins = ['EVIL']\n"},
		{name: "pyproject.toml", text: "\ufeff[tool.mypy]\nplugins = ['EVIL']\n"},
		{name: "pyproject.toml", text: "x = {a = 1,\n}}\n[tool.mypy]\nplugins = ['EVIL']\n"}, // another's TOML
		{name: "pyproject.toml", text: "[project]\nname = 'x'\n[tool.ruff]\nselect = ['E']\n[tool]\nblack = {line-length = 3}\n", none: true},
		{name: "cargo.toml", text: "[package]\n\"build\" = 'EVIL'\n"},
		{name: "cargo.toml", text: "package.build = 'EVIL'\n"},
		{name: "cargo.toml", text: "package = {name = 'x', build = 'EVIL'}\n"},
		{name: "cargo.toml", text: "[package]\n\"bu\\u0069ld\" = 'EVIL'\n"},
		{name: "cargo.toml", text: "[lib]\nproc-macro = true # EVIL\n"},
		{name: "cargo.toml", text: "[package]\nname = 'x'\n[dependencies]\nbuild = '1'\n[lib]\nname = 'y'\n", none: true},
		{name: "setup.cfg", text: "[mypy]\nx =\n  [y]\nplugins = EVIL\n"},
		{name: "setup.cfg", text: "[metadata]\rname = x\r[mypy]\rplugins = EVIL\r"},
		{name: "setup.cfg", text: "[DEFAULT]\nplugins = EVIL\n"},
		{name: "setup.cfg", text: "\ufeff[mypy]\nplugins = EVIL\n"},
		{name: "setup.cfg", text: "[mypy]\n\n[metadata]\nname = x\n", none: true},
		{name: "package.json", text: `{"eslintConfig": {}, "\u0065slintConfig": {"parser": "EVIL"}}`},
		{name: "package.json", text: "\ufeff" + `{"\u0065slintConfig": {"parser": "EVIL"}}`},
		{name: "package.json", text: `{"name": "\ud83d\ude00", "dependencies": {"a": "1"}}`, none: true},
		{name: "tsconfig.json", text: "{ // x\n" + `"compilerOptions": {"plug\u0069ns": [{"name": "EVIL"}]}}`},
		{name: "tsconfig.json", text: "{ // x\n\"compilerOptions\": {}}", none: true},
	} {
		found := settings("a/"+c.name, []byte(c.text))
		was := settings("a/"+c.name, []byte(strings.ReplaceAll(strings.ReplaceAll(c.text, "true # EVIL", "false"), "EVIL", "good")))
		switch {
		case c.none && bytes.Contains(found, []byte("name = x")), c.none && !strings.HasPrefix(c.text, "[mypy]") && found != nil:
			t.Errorf("%s: %q has %q", c.name, c.text, found)
		case !c.none && bytes.Equal(found, was):
			t.Errorf("%s: nothing of %q is found: %q", c.name, c.text, found)
		}
	}
}

// TestSettingsThatAreNotRead may be any.
func TestSettingsThatAreNotRead(t *testing.T) {
	t.Parallel()
	paths := slices.Values([]string{"pyproject.toml", "other.toml"})
	for _, unread := range []bool{true, false} {
		found := Find(autorun.Know(paths), Tree{
			Root: "/r", Paths: paths,
			Texts:  func(string) [][]byte { return [][]byte{nil, nil} },
			Unread: func(string) bool { return unread },
		}, nil)
		if got := slices.ContainsFunc(found, func(l autorun.Lead) bool { return l.Path == "pyproject.toml" && l.Level == autorun.Started }); got != unread || slices.ContainsFunc(found, func(l autorun.Lead) bool { return l.Path == "other.toml" }) {
			t.Errorf("unread %t: %v", unread, found)
		}
	}
}
