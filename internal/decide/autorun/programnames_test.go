package autorun

import (
	"slices"
	"testing"
)

// TestNamesWhoseFormatsNamePrograms are not brought over as if nothing ran them: programs run what stands
// in them or is named there. The controls are names beside them.
func TestNamesWhoseFormatsNamePrograms(t *testing.T) {
	t.Parallel()
	f := Know(slices.Values([]string(nil)))
	for name, why := range map[string]string{
		".gitlint":               "[general] extra-path: gitlint imports each Python file there, and as a commit-msg hook at each commit",
		".cspell.json":           "import: names JavaScript, which cspell and the spell checkers of editors load",
		".changeset/config.json": "changelog: names a module that changesets loads",
		".bumpversion.toml":      "pre_commit_hooks, setup_hooks: lines for a shell",
		".bumpversion.cfg":       "the same, of bump-my-version",
		".all-contributorsrc":    "contributorTemplate: is a template with JavaScript in it",
		".browserslistrc":        "extends names a module",
		"ansible.cfg":            "names directories of plug-ins",
		"mkdocs.yml":             "hooks: names Python",
		"docs/conf.py":           "is Python that sphinx runs",
		"vetur.config.js":        "is JavaScript that an editor loads",
		"graphql.config.js":      "the same",
		".htaccess":              "Apache obeys it: php_value auto_prepend_file, SetHandler",
	} {
		if got := f.Level(name); got == Plain {
			t.Errorf("%s is brought over without a word: %s", name, why)
		}
	}
	for name, want := range map[string]Level{".gitignore": Plain, ".pre-commit-config.yaml": Started, ".unknown": Hidden, ".changeset/brave-cats-sing.md": Plain, "docs/index.md": Plain} {
		if got := f.Level(name); got != want {
			t.Errorf("control %s: %d", name, got)
		}
	}
}
