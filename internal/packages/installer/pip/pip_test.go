package pip

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/installertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	installertest.Run(t, installertest.Sample{
		Installer: New(),
		Manifests: map[string]installertest.Manifest{
			"requirements.txt": {Text: "--pre\n# why\nrich[jupyter] >=13 ; python_version > \"3.8\"\nAttrs==23.2.0 --hash=sha256:aa\nsix @ https://x.example/six.whl\n./here\n", Roots: []string{"rich[jupyter]", "Attrs"}},
			"setup.cfg":        {Text: "[metadata]\nname = own\n[options]\ninstall_requires =\n    Django >= 4.2\n    # why\n    six; python_version > '3'\n[options.extras_require]\ndev = pytest\n", Roots: []string{"Django", "six", "pytest"}},
			"Pipfile":          {Text: "[packages]\nrich = \"*\"\nown = {path = \".\"}\n[dev-packages]\npytest = {version = \"*\", extras = [\"dev\"]}\n[requires]\npython_version = \"3.11\"\n", Roots: []string{"rich", "pytest[dev]"}},
			"uv.toml":          {Text: "override-dependencies = [\"six\"]\nconstraint-dependencies = [\"own @ https://x.example/own.whl\"]\n", Roots: []string{"six"}},
			"hatch.toml":       {Text: "[envs.default]\ndependencies = [\"six\"]\n[envs.test]\nextra-dependencies = [\"pytest\"]\n", Roots: []string{"six", "pytest"}},
			"pyproject.toml": {
				Text:  "[build-system]\nrequires = [\"hatchling\"]\n[project]\ndependencies = [\"rich>=13\"]\n[project.optional-dependencies]\nx = [\"six\"]\n[dependency-groups]\ndev = [\"pytest\", {include-group = \"x\"}]\n",
				Roots: []string{"hatchling", "rich", "six", "pytest"},
			},
		},
		Asked: []string{"pip3.11 install -q x", "/usr/bin/python3 -m pip download x", "pip wheel x"},
		Rewrites: []installertest.Rewrite{
			{Command: "pip install rich", Resolver: "pip", Lines: []string{`pip install --dry-run --ignore-installed --no-input --report "$out/report.json" rich || exit`}},
			{Command: "/usr/bin/pip3.11 install --dry-run --report x -r a.txt", Resolver: "pip", Lines: []string{`/usr/bin/pip3.11 install --dry-run --ignore-installed --no-input --report "$out/report.json" -r a.txt || exit`}, Not: " x "},
			{Command: "python3 -m pip install rich", Resolver: "pip", Lines: []string{`python3 -m pip install --dry-run --ignore-installed --no-input --report "$out/report.json" rich || exit`}},
		},
		Refused: map[string]string{"pip install --help": "asks for help"},
		Others:  []string{"pip download rich", "python3 -m venv install", "python3 pip install rich"},
		Results: []installertest.Result{{
			Command: "pip install rich", Documents: installer.Documents{reportFile: []byte(`{"version":"1","install":[` + item("Rich", "13.7.1", "https://files.example/rich-13.7.1-py3-none-any.whl", "") + `]}`)},
			Releases: []string{"rich 13.7.1"}, LockNames: []string{"lock.txt"},
		}},
		Wanted: [2]installer.Wanted{{Name: "rich", Version: "13.7.1"}, {Name: "six"}},
	})
}

// TestBuiltIn: nothing names the registry that the client asks anyway.
func TestBuiltIn(t *testing.T) {
	t.Parallel()
	r := installer.Registry{Index: "https://index.example/simple/"}
	if got := New().Mirror(r)["PIP_INDEX_URL"]; got != r.Index {
		t.Errorf("another registry is named %q", got)
	}
	r.BuiltIn = true
	if env := New().Mirror(r); env != nil {
		t.Errorf("the client's own is named: %v", env)
	}
}
