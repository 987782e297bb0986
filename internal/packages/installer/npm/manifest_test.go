package npm

import (
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/installertest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// TestNullIsNoVersion: no client asks for a name by null, so that it is not read as "", by which each asks for any version. The control has
// "" in its place.
func TestNullIsNoVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		format manifest.Format
		text   string
	}{
		"dependencies":         {packageFormat(), `{"dependencies":{"own":null}}`},
		"devDependencies":      {packageFormat(), `{"devDependencies":{"own":null}}`},
		"optionalDependencies": {packageFormat(), `{"optionalDependencies":{"own":null}}`},
		"peerDependencies":     {packageFormat(), `{"peerDependencies":{"own":null}}`},
		"a catalog of bun's":   {packageFormat(), `{"workspaces":{"catalog":{"own":null}}}`},
		"catalogs of bun's":    {packageFormat(), `{"catalogs":{"x":{"own":null}}}`},
		"pnpm's package":       {yamlFormat(), "dependencies:\n  own: null\n"},
		"a catalog of pnpm's":  {workspaceFormat(), "catalog:\n  own: null\n"},
		"catalogs of pnpm's":   {workspaceFormat(), "catalogs:\n  x: {own: null}\n"},
		"a catalog of yarn's":  {yarnrcFormat(), "catalog:\n  own: null\n"},
		"pnpm's extensions":    {packageFormat(), `{"pnpm":{"packageExtensions":{"a":{"dependencies":{"own":null}}}}}`},
		"extensions of pnpm's": {workspaceFormat(), "packageExtensions:\n  a:\n    optionalDependencies: {own: null}\n"},
		"extensions of yarn's": {yarnrcFormat(), "packageExtensions:\n  a@*:\n    peerDependencies: {own: null}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if roots, _, err := readText(c.format, strings.Replace(c.text, "null", `""`, 1)); err != nil || roots != "own" {
				t.Fatalf("the control has the roots %v, %v", roots, err)
			}
			wantsError := c.format.Name != yamlFormat().Name // which withholds all names of what is no package
			if roots, left, err := readText(c.format, c.text); roots != "" || wantsError && (err == nil || !strings.Contains(err.Error(), `"own" is asked for by null`)) || !wantsError && (err != nil || !strings.Contains(left, "it is no package as pnpm has it")) {
				t.Errorf("the roots are %v, %v", roots, err)
			}
		})
	}
}

// readText reads one manifest of a project, and gives the names that it asks for and what is left out.
func readText(format manifest.Format, text string) (roots, left string, err error) {
	w := manifest.NewWants(installertest.Files{format.Name: text}, func(name string) (string, bool) { return name, name != "" })
	if _, err := w.Include(format, format.Name); err != nil {
		return "", "", err
	}
	all, err := w.Roots()
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
	}
	var lines []string
	for _, l := range w.LeftOut() {
		lines = append(lines, l.String())
	}
	return strings.Join(names, " "), strings.Join(lines, "\n"), err
}

// TestAKeyThatIsNoText: YAML has numbers and more for keys, which clients read as text. One of them hides nothing of what is beside it.
func TestAKeyThatIsNoText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		format      manifest.Format
		text        string
		roots, left string // left: a part of what is left out
	}{
		"a plugin that comes from an address": {workspaceFormat(), "configDependencies:\n  own: {tarball: 'https://files.example/x.tgz', KEY: x}\n  ms: {integrity: 1.0.0+sha512-x, KEY: x}\n", "ms", "pnpm-workspace.yaml:2: own: it comes from an address"},
		"a scope of another registry":         {workspaceFormat(), "registries:\n  'https://npm.example/': {scopes: ['@own'], KEY: x}\ncatalog: {ms: '2', '@own/a': '1'}\n", "ms", "@own/*: another registry"},
		"an extension of pnpm's":              {workspaceFormat(), "packageExtensions:\n  a:\n    dependencies: {KEY: '1', ms: '2'}\n", "KEY ms", ""},
		"an extension of yarn's":              {yarnrcFormat(), "packageExtensions:\n  a:\n    peerDependencies: {ms: '2', own: '1'}\n    peerDependenciesMeta: {own: {optional: true, KEY: x}}\n", "ms", ""},
	} {
		for _, key := range []string{"x", "1", "true"} { // the first is the control
			t.Run(name+", "+key, func(t *testing.T) {
				t.Parallel()
				roots, left, err := readText(c.format, strings.ReplaceAll(c.text, "KEY", key))
				if err != nil || sorted(roots) != sorted(strings.ReplaceAll(c.roots, "KEY", key)) || !strings.Contains(left, c.left) {
					t.Errorf("the roots are %q, left out is %q, %v", roots, left, err)
				}
			})
		}
	}
}

// sorted are words in their order.
func sorted(words string) string {
	return strings.Join(slices.Sorted(strings.FieldsSeq(words)), " ")
}

// TestANumberIsText in YAML, by which pnpm and yarn ask for a version: of a table of specs none is passed over without a word.
func TestANumberIsText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		format manifest.Format
		text   string
	}{
		"a catalog of pnpm's":    {workspaceFormat(), "catalog:\n  ms: 2\n"},
		"a catalog of yarn's":    {yarnrcFormat(), "catalog:\n  ms: 2\n"},
		"an extension of pnpm's": {workspaceFormat(), "packageExtensions:\n  a:\n    dependencies:\n      ms: 2\n"},
		"an extension of yarn's": {yarnrcFormat(), "packageExtensions:\n  a@*:\n    optionalDependencies:\n      ms: 2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if roots, left, err := readText(c.format, c.text); err != nil || roots != "ms" || left != "" {
				t.Errorf("the roots are %q, left out is %q, %v", roots, left, err)
			}
		})
	}
}

// TestAPluginWithoutText: pnpm's plugins have a version that is text, or a table; by what else there is pnpm asks for none.
func TestAPluginWithoutText(t *testing.T) {
	t.Parallel()
	for spec, roots := range map[string]string{"1.0.0+sha512-x": "own", "{integrity: x}": "own", "~": "", "[]": "", "false": "", "1.0": ""} {
		got, left, err := readText(workspaceFormat(), "configDependencies:\n  own: "+spec+"\n")
		if err != nil || got != roots || (roots == "") != strings.Contains(left, "pnpm-workspace.yaml:2: own: it has no version") {
			t.Errorf("%s: the roots are %q, left out is %q, %v", spec, got, left, err)
		}
	}
}
