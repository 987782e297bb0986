package npm

import (
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/installertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	lock := []byte(`{"lockfileVersion":3,"packages":{"":{"name":"demo"},"node_modules/express":{"version":"4.0.0","integrity":"` + sri + `"}}}`)
	installertest.Run(t, installertest.Sample{
		Installer: New(),
		Manifests: map[string]installertest.Manifest{
			"pnpm-workspace.yaml": {Text: "packages: [\"packages/*\"]\ncatalog:\n  react: ^18\ncatalogs:\n  old:\n    vue: ^2\n", Roots: []string{"react", "vue"}},
			"package.yaml":        {Text: "dependencies:\n  left-pad: ^1\n  own: file:../own\n", Roots: []string{"left-pad"}},
			"package.json": {
				Text: `{"dependencies": {"left-pad": "^1", "own": "file:../own"},
"devDependencies": {"other": "npm:@s/real@^2"}, "optionalDependencies": {"fsevents": "*"}}`,
				Roots: []string{"left-pad", "@s/real", "fsevents"},
			},
		},
		Asked: []string{"npm i x", "npm10 -g install x", "yarn add x", "bun install x"},
		Rewrites: []installertest.Rewrite{
			{Command: "npm i -g --ignore-scripts express@4", Resolver: "npm", Lines: []string{"npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved express@4 || exit"}, Not: " -g"},
			{Command: "npm ci", Resolver: "npm", Not: "npm install"},
		},
		Refused: map[string]string{"npm ci express": "takes no packages", "npm install --prefix=/x express": "the project's folder"},
		Others:  []string{"npm run build", "npm view express"},
		Results: []installertest.Result{{Command: "npm ci", Documents: installer.Documents{packageLock: lock}, Releases: []string{"express 4.0.0"}, LockNames: []string{"npm-shrinkwrap.json"}}},
		Wanted:  [2]installer.Wanted{{Name: "express", Version: "4.0.0"}, {Name: "@a/b"}},
	})
}

const sri = "sha512-PYAthTa2m2VKxuvSD3DPC/Gy+U+sOA1LAuT8mkmRuvw+NACSaeXEQ+NHcVF7rONl6qcaxV3Uuemwawk+7+SJLw=="

func TestNPMLeavesOutOtherSystems(t *testing.T) {
	lock := `{"lockfileVersion":3,"packages":{"":{"name":"demo"},
		"node_modules/a":{"version":"1.0.0","integrity":"` + sri + `"},
		"node_modules/a/node_modules/b":{"version":"2.0.0","integrity":"` + sri + `","os":["linux"],"optional":true},
		"node_modules/b":{"version":"1.0.0","integrity":"` + sri + `","os":["darwin"],"optional":true},
		"node_modules/c":{"version":"1.0.0","integrity":"` + sri + `","os":["!linux"],"optional":true},
		"node_modules/d":{"version":"1.0.0","integrity":"` + sri + `","cpu":["no-such"]},
		"node_modules/e":{"version":"1.0.0","integrity":"` + sri + `","cpu":["no-such"],"optional":true}}}`
	got, err := resolver().Result(installer.Documents{"package-lock.json": []byte(lock)})
	var names []string
	for _, c := range got.Choices {
		names = append(names, c.Name+" "+c.Version)
	}
	if want := []string{"a 1.0.0", "b 2.0.0", "d 1.0.0"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v; want %q", names, err, want)
	}
	if len(got.Notes) != 1 || !strings.HasPrefix(got.Notes[0], "3 optional packages ") {
		t.Errorf("notes %q", got.Notes)
	}
}

// TestBuiltIn: nothing names the registry that the client asks anyway.
func TestBuiltIn(t *testing.T) {
	t.Parallel()
	r := installer.Registry{Index: "https://index.example/simple/"}
	if got := New().Mirror(r)["npm_config_registry"]; got != r.Index {
		t.Errorf("another registry is named %q", got)
	}
	r.BuiltIn = true
	if env := New().Mirror(r); env != nil {
		t.Errorf("the client's own is named: %v", env)
	}
}
