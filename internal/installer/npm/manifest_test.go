package npm

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/installer/installertest"
	"github.com/cofferdam-dev/cofferdam/internal/manifest"
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := func(text string) (roots []manifest.Root, err error) {
				w := manifest.NewWants(installertest.Files{c.format.Name: text}, func(name string) (string, bool) { return name, name != "" })
				if _, err := w.Include(c.format, c.format.Name); err != nil {
					return nil, err
				}
				return w.Roots()
			}
			if roots, err := read(strings.Replace(c.text, "null", `""`, 1)); err != nil || len(roots) != 1 {
				t.Fatalf("the control has the roots %v, %v", roots, err)
			}
			if roots, err := read(c.text); len(roots) > 0 || err != nil && !strings.Contains(err.Error(), `"own" is asked for by null`) {
				t.Errorf("the roots are %v, %v", roots, err)
			}
		})
	}
}
